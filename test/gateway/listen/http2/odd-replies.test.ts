/** Some replies are valid in HTTP/1.1 and not in node:http2. They must not end the process. */
import { readFileSync } from 'node:fs';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { createServer, type Socket } from 'node:net';
import t from 'tap';
import { createAuthority } from '#test/support/certificates.ts';
import { type Owner, startTestGateway } from '#test/support/gateway.ts';

const authority = createAuthority(t);
const files = authority.issue('server', 'IP:127.0.0.1');
const ca = readFileSync(authority.ca);
const env = { GATEWAY_TLS_CERT: files.cert, GATEWAY_TLS_KEY: files.key, GATEWAY_HTTP2: '1' };

interface Answer {
  readonly status: number;
  /** Alternating names and values. */
  readonly fields: readonly string[];
  readonly body: string;
  readonly code: number | undefined;
}

/** Starts an application that sends given bytes for each path. */
async function startBytes(owner: Owner, replies: ReadonlyMap<string, string>): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      const [, path = ''] = /^\w+ (\S+)/.exec(chunk.toString('latin1')) ?? [];
      const reply = replies.get(path);
      if (reply !== undefined) socket.end(reply, 'latin1');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  owner.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

function session(owner: Owner, port: number): ClientHttp2Session {
  const one = connect(`https://127.0.0.1:${port}`, { ca });
  one.on('error', () => undefined);
  owner.teardown(() => one.destroy());
  return one;
}

function ask(one: ClientHttp2Session, path: string, method = 'GET'): Promise<Answer> {
  return new Promise((resolve) => {
    const stream = one.request({ ':path': path, ':method': method });
    let fields: readonly string[] = [];
    let status = 0;
    let body = '';
    stream.on('response', (headers, _flags, raw: string[]) => {
      status = Number(headers[':status']);
      fields = raw;
    });
    stream.on('data', (chunk: Buffer) => {
      body += chunk.toString('latin1');
    });
    stream.on('error', () => undefined);
    stream.once('close', () => resolve({ status, fields, body, code: stream.rstCode }));
  });
}

function valuesOf({ fields }: Answer, name: string): string[] {
  return fields.filter((_, i) => i % 2 === 1 && fields[i - 1] === name);
}

t.test('repeated and odd header fields of a reply pass as over HTTP/1.1', async (t) => {
  const twice = [
    'X-Content-Type-Options: nosniff',
    'Expires: 0',
    'Age: 1',
    'Content-Language: en',
    'X-Own: a',
  ];
  const head = `HTTP/1.1 200 OK\r\n${[...twice, ...twice].join('\r\n')}\r\n`;
  const upstream = await startBytes(
    t,
    new Map([
      ['/twice', `${head}constructor: x\r\n__proto__: y\r\nContent-Length: 2\r\n\r\nok`],
      ['/long', `HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(16_250)}\r\nContent-Length: 2\r\n\r\nok`],
    ]),
  );
  const { port } = await startTestGateway(t, { upstream, env });
  const one = session(t, port);
  const answer = await ask(one, '/twice');
  t.match(answer, { status: 200, body: 'ok' });
  t.strictSame(valuesOf(answer, 'x-content-type-options'), ['nosniff', 'nosniff']);
  t.strictSame(valuesOf(answer, 'expires'), ['0', '0']);
  t.strictSame(valuesOf(answer, 'x-own'), ['a', 'a']);
  t.strictSame(valuesOf(answer, 'constructor'), ['x']);
  t.strictSame(valuesOf(answer, '__proto__'), ['y']);
  const long = await ask(one, '/long');
  t.match(long, { status: 200, body: 'ok' }, 'the application may send such a large reply');
  t.equal(valuesOf(long, 'x-long')[0]?.length, 16_250);
});

t.test('a status that HTTP/2 does not know becomes a 502, and one without a body has none', async (t) => {
  const upstream = await startBytes(
    t,
    new Map([
      ['/799', 'HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nok'],
      ['/205', 'HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\nok'],
      ['/304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n'],
      ['/200', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ]),
  );
  const { port } = await startTestGateway(t, { upstream, env });
  const one = session(t, port);
  const unknown = await ask(one, '/799');
  t.equal(unknown.status, 502);
  t.match(unknown.body, /gateway_upstream_unavailable/);
  t.match(await ask(one, '/205'), { status: 205, body: '', code: constants.NGHTTP2_NO_ERROR });
  t.match(await ask(one, '/304'), { status: 304, body: '', code: constants.NGHTTP2_NO_ERROR });
  t.match(await ask(one, '/200'), { status: 200, body: 'ok' }, 'other streams are served');
});
