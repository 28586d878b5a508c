import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import t from 'tap';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { sendRaw } from '#test/support/raw.ts';
import { seededBytes } from '#test/support/seed.ts';
import { until } from '#test/support/until.ts';
import { type BareServer, type BareServerOptions, startBareServer } from './bare-server.ts';
import { read, send } from './exchange.ts';

const MB = 1024 * 1024;
/** Bytes of all values, without a period that could hide a lost or doubled piece. */
const BYTES_8MB = Buffer.concat([
  Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
  seededBytes(1, 8 * MB - 256),
]);

t.test('8 MB arrive unchanged in both directions, with Content-Length and chunked', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.headers['content-length'] !== undefined)
      res.setHeader('content-length', req.headers['content-length']);
    res.setHeader('x-framing', req.headers['transfer-encoding'] ?? 'content-length');
    req.pipe(res);
  });
  const { port } = await startTestGateway(t, { upstream });
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'GET']) {
    const body = method === 'POST' ? BYTES_8MB : BYTES_8MB.subarray(0, 70_000);
    const counted = await send(port, '/', { method, body, headers: { 'content-length': body.length } });
    t.equal(counted.headers['x-framing'], 'content-length');
    t.equal(counted.headers['content-length'], String(body.length));
    t.ok(counted.body.equals(body), `${method} with Content-Length`);
    const chunked = await send(port, '/', {
      method,
      body,
      pieces: 65_537,
      headers: { 'transfer-encoding': 'chunked' },
    });
    t.equal(chunked.headers['x-framing'], 'chunked');
    t.equal(chunked.headers['transfer-encoding'], 'chunked');
    t.ok(chunked.body.equals(body), `${method} chunked`);
  }
});

t.test('160 MB up and down in constant memory: the slow side slows the other one', async (t) => {
  // The body is larger than the bound below, in both directions.
  const total = 160 * MB;
  const chunk = seededBytes(2, 64 * 1024);
  let received = 0;
  const upstream = await startUpstream(t, (req, res) => {
    if (req.method === 'POST') {
      slowly(req, (bytes) => {
        received += bytes;
      }).then(() => res.end('done'));
      return;
    }
    res.setHeader('content-length', total);
    let left = total;
    const push = (): void => {
      while (left > 0) {
        left -= chunk.length;
        if (!res.write(chunk)) {
          res.once('drain', push);
          return;
        }
      }
      res.end();
    };
    push();
  });
  const port = await freePort();
  const gateway = start(['--max-semi-space-size=16', 'gateway/main.ts'], {
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    GATEWAY_ADMIN_PORT: String(await freePort()),
    GATEWAY_UPSTREAM: upstream.origin,
  });
  t.teardown(() => gateway.stop('SIGKILL'));
  await gateway.until(/Gateway ready/);
  const rss = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8'))?.[1]) / 1024;
  await send(port, '/', { method: 'POST', body: 'warm' });
  received = 0;
  const atRest = rss();
  let most = atRest;
  const watch = setInterval(() => {
    most = Math.max(most, rss());
  }, 20);
  t.teardown(() => clearInterval(watch));

  const down = new Promise<number>((resolve, reject) => {
    let bytes = 0;
    request({ host: '127.0.0.1', port, path: '/', agent: new Agent() }, (res) => {
      slowly(res, (count) => {
        bytes += count;
      }).then(() => resolve(bytes), reject);
    }).end();
  });
  t.equal(await down, total);

  const up = request({ host: '127.0.0.1', port, path: '/', method: 'POST', agent: new Agent() });
  up.setHeader('content-length', total);
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    up.on('response', resolve).on('error', reject);
  });
  for (let left = total; left > 0; left -= chunk.length) {
    if (!up.write(chunk)) await new Promise((resolve) => up.once('drain', resolve));
  }
  up.end();
  t.equal((await read(await answered)).body.toString(), 'done');
  t.equal(received, total);
  t.ok(most - atRest < 100, `${Math.round(atRest)} MB at rest, ${Math.round(most)} MB at most`);
});

/** Pauses after each megabyte, so that the sender is always ahead. */
async function slowly(stream: IncomingMessage, onBytes: (count: number) => void): Promise<void> {
  let since = 0;
  for await (const chunk of stream) {
    onBytes((chunk as Buffer).length);
    since += (chunk as Buffer).length;
    if (since < 4 * MB) continue;
    since = 0;
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

t.test('a reader that has stopped stops the upstream, until it leaves', async (t) => {
  let sent = 0;
  const upstream = await startUpstream(t, (_req, res) => {
    const push = (): void => {
      sent += MB;
      if (res.write(Buffer.alloc(MB))) setImmediate(push);
      else res.once('drain', push);
    };
    push();
    res.on('close', () => {
      closed = true;
    });
  });
  let closed = false;
  const { port } = await startTestGateway(t, { upstream });
  const client = sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.until(/^HTTP\/1\.1 200 /);
  client.socket.pause();
  let before = -1;
  while (before !== sent) {
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  t.ok(sent < 40 * MB, `the upstream sent ${sent / MB} MB, which fit into the buffers of the kernel`);
  t.notOk(closed);
  client.socket.destroy();
  await until(() => closed, 'the upstream is told');
});

t.test('events arrive one by one, the header section before the first', async (t) => {
  let emit = (_text: string): void => undefined;
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.flushHeaders();
    emit = (text) => void res.write(text);
    res.on('close', () => {
      closed = true;
    });
  });
  let closed = false;
  const { port } = await startTestGateway(t, { upstream });
  const client = sendRaw(port, 'GET /events HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.until(/text\/event-stream[\s\S]*\r\n\r\n$/);
  for (let i = 0; i < 3; i++) {
    emit(`data: ${i}\n\n`);
    await client.until(new RegExp(`data: ${i}\n\n\r\n$`));
  }
  client.socket.destroy();
  await until(() => closed, 'the upstream learns that nobody listens');
});

/** Starts a server with four upstream connections for all clients. */
function startNarrow(
  t: Parameters<typeof startTestGateway>[0],
  upstream: { readonly origin: string },
  { connections = 4, ...more }: Partial<BareServerOptions> & { readonly connections?: number } = {},
): Promise<BareServer> {
  return startBareServer(t, {
    origin: upstream.origin,
    timeoutMs: 500,
    bounds: { upstream_connections: { total: connections, perClient: connections } },
    ...more,
  });
}

t.test('48 aborts at once on 4 connections leave all 4 usable', async (t) => {
  let connections = 0;
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/ok') res.end('ok');
    // The body is larger than the buffers of the kernel.
    else if (req.url === '/big') res.end(Buffer.alloc(32 * MB));
  });
  upstream.server.on('connection', () => connections++);
  const { port, upstream: narrow } = await startNarrow(t, upstream, { timeoutMs: 600_000 });
  for (const path of ['/hang', '/big']) {
    const clients = Array.from({ length: 48 }, () => {
      const client = sendRaw(port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      client.socket.pause();
      return client;
    });
    await until(() => narrow.waiting >= 40, `${path}: all others wait`);
    for (const { socket } of clients) socket.destroy();
    await until(() => narrow.waiting === 0, `${path}: nobody waits any more`);
    const before = connections;
    const answers = await Promise.all(Array.from({ length: 40 }, () => send(port, '/ok')));
    t.same(new Set(answers.map(({ body }) => body.toString())), new Set(['ok']));
    // Four are new, and a few belong to requests that were served just before their deadline.
    t.ok(connections - before < 16, `${connections - before} new connections: waiting needs none`);
  }
});

t.test('a request that waits for a connection times out, and the wait is counted', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/ok') res.end('ok');
  });
  const { port, upstream: narrow } = await startNarrow(t, upstream);
  const early = Array.from({ length: 8 }, () => send(port, '/hang'));
  await until(() => narrow.waiting === 4, 'four wait');
  await new Promise((resolve) => setTimeout(resolve, 250));
  const late = send(port, '/ok');
  t.same(
    (await Promise.all(early)).map(({ status }) => status),
    Array(8).fill(504),
  );
  // If they had waited twice, this one would also have waited until its deadline.
  t.equal((await late).status, 200, 'a later request gets a connection');
  t.match(narrow, { waiting: 0, unavailable: 0, timeouts: 8 });
});

t.test('a client that does not read for too long gives its upstream connection back', async (t) => {
  let closed = 0;
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/ok') {
      res.end('ok');
      return;
    }
    res.on('close', () => closed++);
    const push = (): void => {
      while (res.write(Buffer.alloc(MB)));
      res.once('drain', push);
    };
    push();
  });
  const { port } = await startNarrow(t, upstream, { unreadTimeoutMs: 400, timeoutMs: 600_000, checkMs: 100 });
  const clients = Array.from({ length: 4 }, () => {
    const client = sendRaw(port, 'GET /endless HTTP/1.1\r\nHost: a\r\n\r\n');
    client.socket.pause();
    return client;
  });
  t.equal((await send(port, '/ok')).status, 200);
  await until(() => closed > 0, 'the upstream sees it closed');
  for (const { socket } of clients) socket.destroy();
});
