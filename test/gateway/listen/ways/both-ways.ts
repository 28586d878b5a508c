/** The tests that hold on both ways through the gateway: with its own parser, and with node:http alone. */
import { request } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import type { Test } from 'tap';
import { startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { busyFor } from '#test/support/busy.ts';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
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

export function testBothWays(t: Test, env: Env): void {
  t.test('replies of all framings, in sequence on one connection', async (t) => {
    const long = 'x'.repeat(200_000);
    let end = (): void => undefined;
    const upstream = await startUpstream(t, (req, res) => {
      const [, kind = ''] = (req.url ?? '').split('/');
      if (kind === 'none') res.writeHead(204).end();
      else if (kind === 'same') res.writeHead(304, { etag: '"1"' }).end();
      else if (kind === 'length') res.writeHead(200, { 'content-length': long.length }).end(long);
      else if (kind === 'chunks') {
        res.write('a');
        end = () => void res.end('b');
      } else res.end('whole');
    });
    const { port } = await startTestGateway(t, { upstream: upstream.origin, env });
    const client = sendRaw(port, '');
    // Compares the end of the text. A pattern such as /x{200000}$/ tries every start, which takes minutes.
    const next = async (line: string, end: string): Promise<string> => {
      const before = client.received().length;
      client.socket.write(`${line} HTTP/1.1\r\nHost: a\r\n\r\n`);
      await until(() => {
        if (client.socket.destroyed) throw new Error(`closed before the end of the reply to ${line}`);
        return client.received().length > before && client.received().endsWith(end);
      }, line);
      return client.received().slice(before);
    };
    t.match(await next('GET /none', '\r\n\r\n'), /^HTTP\/1\.1 204 No Content\r\n/);
    t.match(await next('GET /same', '\r\n\r\n'), /^HTTP\/1\.1 304 Not Modified\r\netag: "1"\r\n/i);
    t.match(await next('HEAD /length', '\r\n\r\n'), /\r\ncontent-length: 200000\r\n/i);
    const length = await next('GET /length', long);
    t.notMatch(length, /transfer-encoding/i);
    await next('GET /chunks', '\r\n1\r\na\r\n');
    end();
    const chunks = await client.until(/\r\n0\r\n\r\n$/);
    t.match(chunks, /\r\nTransfer-Encoding: chunked\r\n/i);
    t.match(chunks, /\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n$/);
    t.match(await next('GET /whole', 'whole'), /^HTTP\/1\.1 200 OK\r\n/);
    t.match(await next('DELETE /whole', 'whole'), /^HTTP\/1\.1 200 OK\r\n/);
    client.socket.destroy();
  });

  t.test('denials have correct framing and keep the connection', async (t) => {
    let reached = 0;
    const upstream = await startUpstream(t, (req, res) => {
      reached++;
      req.resume();
      res.end('ok');
    });
    const policies = policyFile(
      'name: few, route: "GET,POST /few/*", identifier: ip, limit: 2, window: 366d',
    );
    const { port } = await startTestGateway(t, { upstream: upstream.origin, policies, env });
    const client = sendRaw(port, '');
    for (let i = 0; i < 2; i++) {
      client.socket.write('GET /few/a HTTP/1.1\r\nHost: a\r\n\r\n');
      await client.until(new RegExp(`(?:ok[\\s\\S]*){${i + 1}}$`));
    }
    client.socket.write('GET /few/a HTTP/1.1\r\nHost: a\r\n\r\n');
    const denied = await client.until(/"violated-policies":\[[^\]]*\][^}]*\}$/);
    const [head = '', body = ''] = denied.slice(denied.indexOf('HTTP/1.1 429')).split('\r\n\r\n');
    t.match(head, /\r\nx-gateway-ratelimited: true\r\n/);
    t.match(head, /\r\nRetry-After: \d+\r\n/);
    t.match(head, `\r\nContent-Length: ${body.length}\r\n`);
    client.socket.write('HEAD /few/a HTTP/1.1\r\nHost: a\r\n\r\n');
    t.match(
      await client.until(/HTTP\/1\.1 429[\s\S]*HTTP\/1\.1 429[\s\S]*\r\n\r\n$/),
      /\r\n\r\n$/,
      'a reply to HEAD has no body',
    );
    client.socket.write(post('/few/b', 'a body that nobody reads'));
    await client.until(/(?:HTTP\/1\.1 429[\s\S]*){3}\}$/);
    client.socket.write('GET /free HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.until(/ok$/);
    t.equal(reached, 3);
    client.socket.destroy();
  });

  t.test('uploads: at once, in pieces, byte by byte, and larger than all buffers', async (t) => {
    const upstream = await startUpstream(t, (req, res) => {
      let bytes = 0;
      req.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      req.on('end', () => res.end(`<${bytes}>`));
    });
    const gateway = await startTestGateway(t, { upstream: upstream.origin, env });
    const client = sendRaw(gateway.port, post('/1', 'hello'));
    await client.until(/<5>/);
    client.socket.write(post('/2', '').replace('Content-Length: 0', 'Content-Length: 30'));
    for (let i = 0; i < 30; i++) {
      client.socket.write('x');
      await turn();
    }
    await client.until(/<30>/);
    const large = 'x'.repeat(3_000_000);
    for (let i = 0; i < 3; i++) {
      client.socket.write(post('/3', large));
      await client.until(new RegExp(`(?:<3000000>[\\s\\S]*){${i + 1}}`));
    }
    client.socket.write(post('/4', ''));
    await client.until(/<0>/);
    client.socket.destroy();
    await until(() => heldBy(gateway) === 0, 'everything is given back');
  });

  t.test('an early reply arrives during the upload, and the next request is read', async (t) => {
    const upstream = await startUpstream(t, (req, res) => {
      if (req.method === 'POST') res.writeHead(413, { connection: 'close' }).end('too large');
      else res.end('the next');
    });
    const { port } = await startTestGateway(t, { upstream: upstream.origin, env });
    const body = 'x'.repeat(1_000_000);
    const client = sendRaw(port, post('/up', body).slice(0, 500_000));
    await client.until(/^HTTP\/1\.1 413 [\s\S]*too large/);
    client.socket.write(`${body.slice(0, post('/up', body).length - 500_000)}${GET}`);
    t.match(await client.until(/the next$/), /^HTTP\/1\.1 413 [\s\S]*HTTP\/1\.1 200 /);
    client.socket.destroy();
  });

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

  t.test('an upload behind a request that waits arrives whole', async (t) => {
    const answers: (() => void)[] = [];
    const upstream = await startUpstream(t, (req, res) => {
      let bytes = 0;
      req.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      req.on('end', () => answers.push(() => res.end(`<${bytes}>`)));
    });
    const gateway = await startTestGateway(t, { upstream: upstream.origin, env });
    const client = sendRaw(gateway.port, GET);
    await until(() => answers.length === 1);
    client.socket.write(post('/up', 'x'.repeat(3_000_000)) + GET);
    await until(() => heldBy(gateway) > 10);
    answers[0]?.();
    await until(() => answers.length === 2);
    answers[1]?.();
    await until(() => answers.length === 3);
    answers[2]?.();
    await client.until(/<0>[\s\S]*<3000000>[\s\S]*<0>$/);
    client.socket.destroy();
    await until(() => heldBy(gateway) === 0, 'everything is given back');
  });

  t.test('plain and other requests alternate on one connection', async (t) => {
    const upstream = await startUpstream(t, (req, res) => {
      let body = '';
      req.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      req.on('end', () => res.end(`<${req.method} ${req.url} ${body}>`));
    });
    const { port } = await startTestGateway(t, { upstream: upstream.origin, env });
    const client = sendRaw(port, GET);
    await client.until(/<GET \/a >/);
    client.socket.write(CHUNKED);
    await client.until(/<POST \/c ok>/);
    client.socket.write(post('/d', 'hello'));
    await client.until(/<POST \/d hello>/);
    client.socket.write('GET /e HTTP/1.1\r\nHo');
    await turn();
    client.socket.write('st: a\r\n\r\n');
    await client.until(/<GET \/e >/);
    client.socket.destroy();
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

  t.test('a slow reader slows the upstream, and gets all bytes', async (t) => {
    const size = 20_000_000;
    let written = 0;
    const upstream = await startUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-length': size });
      const piece = Buffer.alloc(100_000, 'x');
      const write = (): void => {
        while (written < size) {
          written += piece.length;
          if (!res.write(piece)) break;
        }
        if (written < size) res.once('drain', write);
        else res.end();
      };
      write();
    });
    const { port } = await startTestGateway(t, { upstream: upstream.origin, env });
    const got = await new Promise<number>((resolve, reject) => {
      const req = request({ port, path: '/large' }, (res) => {
        let bytes = 0;
        res.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          res.pause();
          setImmediate(() => res.resume());
        });
        res.on('end', () => resolve(bytes)).on('error', reject);
      });
      req.on('error', reject).end();
    });
    t.equal(got, size);
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
