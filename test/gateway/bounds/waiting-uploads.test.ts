/** Uploads that wait for their turn: the gateway reads little of them, and all of them proceed. */
import { channel } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { createAuthority } from '#test/support/certificates.ts';
import { type Owner, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { secured } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';

const { ca, issue } = createAuthority(t);
const { cert, key } = issue('server', 'IP:127.0.0.1,DNS:localhost');

const WAYS = {
  'the own parser': { GATEWAY_OWN_PARSER: '1' },
  'node:http': { GATEWAY_OWN_PARSER: '0' },
  TLS: { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key },
};

const BODY_BYTES = 3_000_000;
const GET = 'GET /get HTTP/1.1\r\nHost: a\r\n\r\n';
const HEAD = `POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`;
const CHUNK = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
const CHUNKED = `POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNK.repeat(100)}0\r\n\r\n`;

/** 16 KiB that did not suffice, and one read of 64 KiB; over TLS as many in records. */
const READ_BYTES_MAX = 98_304;

/** Collects the connections that a port of this process accepts. */
function acceptedOn(owner: Owner, port: number): Socket[] {
  const accepted: Socket[] = [];
  const onSocket = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket };
    if (socket.localPort === port) accepted.push(socket);
  };
  const sockets = channel('net.server.socket');
  sockets.subscribe(onSocket);
  owner.teardown(() => sockets.unsubscribe(onSocket));
  return accepted;
}

/** Starts a gateway whose only upload is in progress until `release` is called. */
async function startBusy(owner: Owner, env: Readonly<Record<string, string>>) {
  let release = (): void => undefined;
  const bodies: number[] = [];
  const upstream = await startUpstream(owner, (req, res) => {
    let bytes = 0;
    req.on('error', () => undefined);
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    req.on('end', () => {
      if (req.method === 'POST') bodies.push(bytes);
      res.end('done');
    });
    if (req.url === '/first') release = () => void res.end('first');
  });
  const gateway = await startTestGateway(owner, {
    upstream: upstream.origin,
    env: { GATEWAY_UPSTREAM_CONNECTIONS: '2', ...env },
  });
  const accepted = acceptedOn(owner, gateway.port);
  const connect = async (text: string, localAddress = '127.0.0.1'): Promise<Duplex> => {
    const socket =
      'GATEWAY_TLS_CERT' in env
        ? await secured(gateway.port, ca, { localAddress })
        : sendRaw(gateway.port, '', localAddress).socket;
    socket.on('error', () => undefined);
    owner.teardown(() => socket.destroy());
    socket.write(text);
    return socket;
  };
  const held = (bound: string): number =>
    gateway.gateway.samples().find(({ name, labels }) => name === 'floodgate_held' && labels.bound === bound)
      ?.value ?? 0;
  const first = await connect(HEAD.replace('/up', '/first'));
  await until(() => held('uploads') === 1);
  return {
    ...{ accepted, bodies, connect, held },
    release() {
      release();
      first.destroy();
    },
  };
}

for (const [way, env] of Object.entries(WAYS)) {
  for (const [what, before, upload] of [
    ['with its length', '', HEAD + 'x'.repeat(BODY_BYTES)],
    ['in chunks', '', CHUNKED],
    ['in chunks behind a request', GET, CHUNKED],
  ] as const) {
    t.test(`${way}: an upload ${what} waits in the kernel, and then arrives whole`, async (t) => {
      const { accepted, bodies, connect, held, release } = await startBusy(t, env);
      const client = await connect(before + upload);
      await until(() => held('waiting') > 0 && (accepted[1]?.bytesRead ?? 0) > 16_384);
      for (let i = 0; i < 200; i++) await turn();
      t.ok((accepted[1]?.bytesRead ?? 0) <= READ_BYTES_MAX, `${accepted[1]?.bytesRead} bytes were read`);
      release();
      await until(() => bodies.length === 1);
      t.same(bodies, [upload === CHUNKED ? 100 * 0x8000 : BODY_BYTES]);
      client.destroy();
      await until(() => held('uploads') + held('waiting') === 0, 'everything is given back');
    });
  }
}

/** One client has 10 of these places. */
const FEW_PLACES = { GATEWAY_WAITING: '160' };

for (const [way, env] of Object.entries(WAYS)) {
  t.test(`${way}: what was read of an upload counts among the waiting requests`, async (t) => {
    const { connect, held, release } = await startBusy(t, { ...env, ...FEW_PLACES });
    let refusals = '';
    const clients = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const client = await connect(HEAD + 'x'.repeat(BODY_BYTES));
        client.on('data', (chunk: Buffer) => {
          refusals += chunk.toString();
        });
        return client;
      }),
    );
    await until(() => /429[\s\S]*"bound":"waiting","scope":"client"/.test(refusals));
    t.ok(held('waiting') <= 10);
    for (const client of clients) client.destroy();
    release();
    await until(() => held('uploads') + held('waiting') === 0, 'everything is given back');
  });

  t.test(`${way}: uploads of many clients proceed one after the other`, async (t) => {
    const { bodies, connect, held, release } = await startBusy(t, { ...env, ...FEW_PLACES });
    for (let i = 2; i < 10; i++) await connect(HEAD + 'x'.repeat(BODY_BYTES), `127.0.0.${i}`);
    await until(() => held('waiting') > 16, 'each takes several places');
    release();
    await until(() => bodies.length === 8);
    t.same(bodies, Array(8).fill(BODY_BYTES));
    await until(() => held('uploads') + held('waiting') === 0, 'everything is given back');
  });

  t.test(`${way}: an upload whose client has left gives its places back at the deadline`, async (t) => {
    const { connect, held } = await startBusy(t, { ...env, GATEWAY_UPSTREAM_TIMEOUT_MS: '1000' });
    const client = await connect(HEAD + 'x'.repeat(BODY_BYTES));
    await until(() => held('waiting') > 1);
    client.destroy();
    await until(() => held('waiting') === 0);
    t.equal(held('uploads'), 1);
  });
}
