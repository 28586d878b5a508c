/** What holds on both ways into the gateway. */
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { busyFor } from '#test/support/busy.ts';
import { startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';

type Env = Readonly<Record<string, string>>;

const GET = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n';
const CHUNKED = 'POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n';

const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** Everything that a client or a reply can hold. */
function heldBy({ gateway }: TestGateway): number {
  return gateway
    .samples()
    .filter(({ name, labels }) => name === 'floodgate_held' && labels.bound !== 'connections')
    .reduce((sum, { value }) => sum + value, 0);
}

async function testWay(t: Test, env: Env): Promise<void> {
  t.test('answers requests that arrive before the last reply, in order', async (t) => {
    const replies: (() => void)[] = [];
    const upstream = await startUpstream(t, (req, res) => {
      replies.push(() => res.end(`<${req.url}>`));
    });
    const gateway = await startTestGateway(t, { upstream: upstream.origin, env });
    const client = sendRaw(gateway.port, 'GET /0 HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(() => replies.length === 1, 'the first is with the application');
    for (let i = 1; i < 20; i++) client.socket.write(`GET /${i} HTTP/1.1\r\nHost: a\r\n\r\n`);
    for (let i = 0; i < 20; i++) {
      await until(() => replies.length === i + 1, `request ${i}`);
      t.equal(client.received().match(/<\/\d+>/g)?.length ?? 0, i, 'one reply at a time');
      replies[i]?.();
      await client.until(new RegExp(`</${i}>`));
    }
    t.same(
      client.received().match(/<\/\d+>/g),
      Array.from({ length: 20 }, (_, i) => `</${i}>`),
    );
    client.socket.destroy();
    await until(() => heldBy(gateway) === 0, 'everything is given back');
  });

  t.test('bytes behind a request count for the bound until the request is answered', async (t) => {
    const answers: (() => void)[] = [];
    const upstream = await startUpstream(t, (req, res) => {
      req.resume().on('end', () => answers.push(() => res.end(`<${req.url}>`)));
    });
    const gateway = await startTestGateway(t, {
      upstream: upstream.origin,
      env: { ...env, GATEWAY_WAITING: '8' },
    });
    const held = (): number =>
      gateway.gateway.samples().find(({ labels }) => labels.bound === 'pipelined')?.value ?? 0;
    const polite = sendRaw(gateway.port, GET);
    await until(() => answers.length === 1);
    polite.socket.write(post('/small', 'x'.repeat(1000)));
    await until(() => held() > 0);

    const hostile = sendRaw(gateway.port, GET, '127.0.0.3');
    await until(() => answers.length === 2);
    hostile.socket.write(post('/large', 'x'.repeat(30_000)));
    t.equal(await hostile.ended(), '', 'the connection over the share is cut');

    answers[0]?.();
    await until(() => answers.length === 3);
    answers[2]?.();
    await polite.until(/<\/a>[\s\S]*<\/small>$/);
    t.equal(held(), 0);
    polite.socket.destroy();
  });

  t.test('a client that leaves at any point gives everything back', async (t) => {
    const upstream = await startRawUpstream(t, (socket, text) => {
      if (text.startsWith('GET /half')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
    });
    const gateway = await startTestGateway(t, { upstream: upstream.origin, env });
    const large = post('/l', 'x'.repeat(100_000));
    const half = GET.replace('/a', '/half');
    const texts = [GET, half, post('/b', 'hello'), large.slice(0, 50_000), large, CHUNKED.slice(0, -5)];
    for (const [i, text] of [...texts, GET.repeat(3)].entries()) {
      const client = sendRaw(gateway.port, text);
      await until(() => upstream.sockets.length > i, 'it is with the application');
      if (text === half) await client.until(/half$/);
      client.socket.destroy();
      await until(() => upstream.sockets.every((socket) => socket.destroyed), 'the upstream call is over');
      await until(() => heldBy(gateway) === 0, 'everything is given back');
      t.equal(upstream.sockets.length, i + 1, 'requests behind it never began');
    }
  });

  t.test('400: a client that ends the connection in the middle of a body', async (t) => {
    const upstream = await startRawUpstream(t, () => undefined);
    const gateway = await startTestGateway(t, { upstream: upstream.origin, env });
    const client = sendRaw(gateway.port, post('/b', 'x'.repeat(100_000)).slice(0, 50_000));
    await until(() => upstream.sockets.length === 1, 'the upload has begun');
    client.socket.end();
    t.match(await client.ended(), /^HTTP\/1\.1 400 /);
    await until(() => upstream.sockets[0]?.destroyed === true, 'the upstream call is over');
    await until(() => heldBy(gateway) === 0, 'everything is given back');
  });

  t.test('a reply that the upstream breaks off is cut, not completed', async (t) => {
    const upstream = await startRawUpstream(t, (socket, text) => {
      const kind = text.includes('/chunks')
        ? 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello'
        : 'Content-Length: 9\r\n\r\nhello';
      socket.write(`HTTP/1.1 200 OK\r\n${kind}`);
      setImmediate(() => setImmediate(() => socket.destroy()));
    });
    const { port } = await startTestGateway(t, { upstream: upstream.origin, env });
    for (const path of ['/chunks', '/length']) {
      const text = await sendRaw(
        port,
        `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`,
      ).ended();
      t.notMatch(text, /0\r\n\r\n$/, path);
      if (text.includes(' 200 ')) t.match(text, /hello/);
      else t.match(text, /^HTTP\/1\.1 502 /);
      const old = sendRaw(port, `POST ${path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n`);
      const reset = new Promise((resolve) => old.socket.on('error', resolve));
      if (path === '/chunks') t.match(await reset, { code: 'ECONNRESET' }, 'HTTP/1.0 has no other sign');
    }
  });

  t.test('a drain answers a request that arrived while the gateway was busy', async (t) => {
    const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
    const { port, gateway } = await startTestGateway(t, {
      upstream: upstream.origin,
      env: { ...env, GATEWAY_DRAIN_TIMEOUT_MS: '60000' },
    });
    const client = sendRaw(port, GET);
    await client.until(/ok$/);
    const closed = gateway.close();
    for (let turns = 0; turns < 100; turns++) await turn();
    client.socket.write(GET);
    // Now it is time to close idle connections, and the request has not been read.
    busyFor(1000);
    t.match(await client.ended(), /ok[\s\S]*\r\nConnection: close\r\n[\s\S]*ok$/);
    await closed;
  });

  t.test('a drain answers what has begun, and closes idle connections', async (t) => {
    const replies: (() => void)[] = [];
    const upstream = await startUpstream(t, (req, res) => {
      if (req.url === '/now') res.end('now');
      else replies.push(() => res.end('in the end'));
    });
    const { port, gateway } = await startTestGateway(t, {
      upstream: upstream.origin,
      env: { ...env, GATEWAY_DRAIN_TIMEOUT_MS: '60000' },
    });
    const idle = sendRaw(port, 'GET /now HTTP/1.1\r\nHost: a\r\n\r\n');
    const begun = sendRaw(port, GET);
    const between = sendRaw(port, 'GET /now HTTP/1.1\r\nHost: a\r\n\r\n');
    await Promise.all([idle.until(/now$/), between.until(/now$/), until(() => replies.length === 1)]);
    const closed = gateway.close();
    between.socket.write('GET /now HTTP/1.1\r\nHost: a\r\n\r\n');
    t.match(
      await between.ended(),
      /now[\s\S]*\r\nConnection: close\r\n[\s\S]*now$/,
      'one more request is answered, then the connection ends',
    );
    t.match(await idle.ended(), /now$/);
    replies[0]?.();
    t.match(await begun.ended(), /\r\nConnection: close\r\n[\s\S]*in the end$/);
    await closed;
  });
}

for (const GATEWAY_OWN_PARSER of ['1', '0'])
  t.test(`GATEWAY_OWN_PARSER=${GATEWAY_OWN_PARSER}`, (t) => testWay(t, { GATEWAY_OWN_PARSER }));
