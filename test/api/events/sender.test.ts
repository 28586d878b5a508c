/** One attempt against receivers that misbehave in every way, and against names whose address changes. */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { createSender } from '#api/events/sender.ts';
import { createTargets, parseAllowedTargets, type Resolve } from '#api/events/targets.ts';
import { startSockets, trusted } from '#test/support/kinds.ts';
import { freePort } from '#test/support/ports.ts';
import { startReceiver } from './support.ts';

/** Longer than any reply takes, also on a busy machine. */
const TIMEOUT_MS = 60_000;
const PRIVATE = 'Webhook URL must not point to private or internal IP addresses';
const message = {
  headers: { 'webhook-id': 'c1' },
  body: '{"event":"testEndpoint"}',
  reach: 'operators',
} as const;

function senderFor(
  t: Test,
  options: { allowed?: string; resolve?: Resolve; allowsInternal?: boolean; timeoutMs?: number } = {},
) {
  const targets = createTargets({
    allowed: parseAllowedTargets(options.allowed ?? ''),
    allowsInternal: options.allowsInternal ?? false,
    resolve: options.resolve ?? (async () => ['127.0.0.1']),
  });
  const sender = createSender(targets, options.timeoutMs ?? TIMEOUT_MS);
  t.teardown(() => sender.close());
  return sender;
}

/** This receiver speaks TCP only. */
const startRaw = async (t: Test, onConnection: (socket: Socket) => void): Promise<string> =>
  `${(await startSockets(t, 'http', onConnection)).origin}/`;

t.test('delivered: the request, and the stored part of the reply', async (t) => {
  const receiver = await startReceiver(t, (response) => response.writeHead(200).end('thanks'));
  const sender = senderFor(t, { allowsInternal: true });
  const url = receiver.url.replace('//', '//me:p%40ss@');
  t.same(await sender.send({ ...message, url }), {
    isDelivered: true,
    isHung: false,
    retryAfter: null,
    statusCode: 200,
    reply: 'thanks',
    error: null,
  });
  const [received] = receiver.received;
  t.equal(received?.text, message.body);
  t.match(received?.headers, {
    'content-type': 'application/json',
    'webhook-id': 'c1',
    authorization: `Basic ${Buffer.from('me:p@ss').toString('base64')}`,
  });
});

t.test('only a 2xx counts as delivered, and a redirect is not followed', async (t) => {
  const victim = await startReceiver(t);
  let status = 0;
  const { url } = await startReceiver(t, (response) =>
    response.writeHead(status, { location: victim.url }).end(),
  );
  const sender = senderFor(t, { allowsInternal: true });
  for (status of [204, 299, 400, 410, 500, 503])
    t.match(await sender.send({ ...message, url }), {
      isDelivered: status < 300,
      statusCode: status,
      error: null,
    });
  for (status of [301, 302, 303, 307, 308])
    t.match(await sender.send({ ...message, url }), {
      isDelivered: false,
      statusCode: status,
      error: /^Redirects are not followed/,
    });
  t.equal(victim.received.length, 0);
});

t.test('a receiver that hangs takes no longer than one attempt may', async (t) => {
  const url = await startRaw(t, () => {});
  const outcome = await senderFor(t, { allowsInternal: true, timeoutMs: 300 }).send({ ...message, url });
  t.same(outcome, {
    isDelivered: false,
    statusCode: null,
    reply: null,
    error: 'No answer within 0.3 s',
    isHung: true,
    retryAfter: null,
  });
});

t.test('stops reading a reply without an end once it has the status', async (t) => {
  const receiver = await startReceiver(t, (response) => {
    response.writeHead(200);
    response.write('so far');
  });
  const outcome = await senderFor(t, { allowsInternal: true, timeoutMs: 2_000 }).send({
    ...message,
    url: receiver.url,
  });
  t.match(outcome, { isDelivered: true, statusCode: 200, reply: 'so far' });
});

t.test('stores the first KiB of a long reply, and reads no more', async (t) => {
  let isCut = false;
  const receiver = await startReceiver(t, (response) => {
    response.on('close', () => {
      isCut = !response.writableFinished;
    });
    response.writeHead(500);
    const more = (): void => {
      while (!response.destroyed && response.write('x\0'.repeat(16_384)));
    };
    response.on('drain', more);
    more();
  });
  const outcome = await senderFor(t, { allowsInternal: true }).send({ ...message, url: receiver.url });
  t.equal(outcome.reply, 'x\uFFFD'.repeat(512), 'NUL, which databases refuse, is left out');
  while (!isCut) await new Promise(setImmediate);
});

t.test('every kind of missing reply has an error message', async (t) => {
  const sender = senderFor(t, { allowsInternal: true });
  const errorOf = async (url: string) => {
    const { error, isHung } = await sender.send({ ...message, url });
    t.notOk(isHung, 'it is no timeout');
    return error;
  };
  const answering = (text: string) => startRaw(t, (socket) => socket.once('data', () => socket.end(text)));
  const failed = (code: string) => `The request failed (${code})`;
  t.equal(await errorOf(`http://127.0.0.1:${await freePort()}/`), failed('ECONNREFUSED'));
  t.equal(await errorOf(await answering('')), failed('ECONNRESET'));
  t.match(await errorOf(await answering('SSH-2.0-OpenSSH_9.9\r\n')), failed('HPE_INVALID_CONSTANT'));
  const long = `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`;
  t.equal(await errorOf(await answering(long)), failed('HPE_HEADER_OVERFLOW'));
  const switched = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n';
  t.equal(await errorOf(await answering(switched)), failed('ECONNRESET'));
  t.equal(await errorOf('nothing'), 'Invalid webhook URL format');
});

t.test('refuses a private target that is not on the operator’s list before it sends anything', async (t) => {
  const receiver = await startReceiver(t);
  const sender = senderFor(t, { allowed: 'hooks.example.com' });
  const { port } = new URL(receiver.url);
  for (const url of [receiver.url, `http://inside.example.com:${port}/`])
    t.match(
      await sender.send({ ...message, url }),
      { isDelivered: false, statusCode: null, error: PRIVATE },
      url,
    );
  t.equal(receiver.received.length, 0);
});

t.test('DNS rebinding: the connection refuses a name that becomes private after the check', async (t) => {
  const receiver = await startReceiver(t);
  const answers = [['93.184.215.14'], ['127.0.0.1']];
  const asked: string[] = [];
  const sender = senderFor(t, {
    resolve: async (hostname) => {
      asked.push(hostname);
      return answers.shift() ?? ['127.0.0.1'];
    },
  });
  const url = `http://rebind.example.com:${new URL(receiver.url).port}/`;
  t.match(await sender.send({ ...message, url }), { isDelivered: false, error: PRIVATE });
  t.equal(asked.length, 2, 'the name is resolved for the check and for the connection');
  t.equal(receiver.received.length, 0);
});

t.test('the operator may list a private address; the checked address is connected to', async (t) => {
  const receiver = await startReceiver(t);
  const { port } = new URL(receiver.url);
  const byAddress = senderFor(t, { allowed: '127.0.0.1' });
  t.match(await byAddress.send({ ...message, url: `http://hooks.example.com:${port}/a` }), {
    isDelivered: true,
  });
  t.match(await byAddress.send({ ...message, url: receiver.url }), { isDelivered: true });
  const byName = senderFor(t, { allowed: 'hooks.example.com' });
  t.match(await byName.send({ ...message, url: `http://hooks.example.com:${port}/b` }), {
    isDelivered: true,
  });
  t.match(await byName.send({ ...message, url: receiver.url }), { isDelivered: false, error: PRIVATE });
  t.same(
    receiver.received.map(({ headers, path }) => [headers.host, path]),
    [
      [`hooks.example.com:${port}`, '/a'],
      [`127.0.0.1:${port}`, '/hook'],
      [`hooks.example.com:${port}`, '/b'],
    ],
  );
});

t.test('https: checks the certificate against the name of the URL, and keeps the connection', async (t) => {
  const { cert, key } = trusted(t, 'DNS:hooks.example.com');
  const names: unknown[] = [];
  const { port } = await startSockets(
    t,
    'https',
    (socket) => {
      names.push((socket as TLSSocket).servername);
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    },
    { cert, key },
  );
  const sender = senderFor(t, { allowsInternal: true });
  for (let i = 0; i < 2; i++)
    t.match(await sender.send({ ...message, url: `https://hooks.example.com:${port}/` }), {
      isDelivered: true,
      reply: 'ok',
    });
  t.same(names, ['hooks.example.com'], 'one connection');
  for (const host of ['other.example.com', '127.0.0.1'])
    t.match(
      await sender.send({ ...message, url: `https://${host}:${port}/` }),
      { isDelivered: false, error: 'The request failed (ERR_TLS_CERT_ALTNAME_INVALID)' },
      host,
    );
});
