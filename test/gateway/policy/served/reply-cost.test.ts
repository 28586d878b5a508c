/**
 * Tests costs of replies over real connections: however a request ends, its reserve is settled once, by the bytes of the body
 * that were sent or by the header that reports the cost. The client counts bytes too, and the access log has those of the
 * connection. Whole replies, and what they take of a limit, are in test/policies/cost.yaml.
 */
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import t, { type Test } from 'tap';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW } from '#test/support/window.ts';

const LIMIT = 100_000_000;
const RESERVE = 5000;
const ROW = `identifier: ip, limit: ${LIMIT}, window: ${LONG_WINDOW}`;
const POLICIES = policyFile(
  `name: bytes, route: "* /files/*", ${ROW}, cost: { reply-bytes: ${RESERVE} }`,
  `name: ai, route: "* /chat/*", ${ROW}, cost: { replyHeader: X-Tokens, reserve: ${RESERVE} }`,
  `name: both-bytes, route: "* /both/*", ${ROW}, cost: { reply-bytes: ${RESERVE} }`,
  `name: both-failures, route: "* /both/*", identifier: ip, limit: 1, window: ${LONG_WINDOW}, count: failure`,
  `name: successes, route: "* /successes", identifier: ip, limit: 1, window: ${LONG_WINDOW}, count: success`,
);

interface Application {
  readonly origin: string;
  /** Replies that have begun and not ended. */
  readonly held: ServerResponse[];
  readonly upgrades: Duplex[];
}

const WAYS_TO_ANSWER: Readonly<
  Record<string, (res: ServerResponse, bytes: number, held: ServerResponse[]) => void>
> = {
  announced: (res, bytes) => void res.writeHead(200, { 'content-length': bytes }).end(Buffer.alloc(bytes)),
  // HEAD: the length that GET would have.
  head: (res, bytes) => void res.writeHead(200, { 'content-length': bytes }).end(),
  hinted(res, bytes) {
    res.writeEarlyHints({ link: '</a>; rel=preload', 'x-tokens': '7' });
    res.end(Buffer.alloc(bytes));
  },
  'without-end'(res) {
    const piece = Buffer.alloc(65_536);
    res.writeHead(200, { 'content-length': 1e12 });
    const more = (): void => {
      if (!res.destroyed) res.write(piece, () => setImmediate(more));
    };
    more();
  },
  broken(res, bytes) {
    res.writeHead(200, { 'content-length': bytes * 2 });
    res.write(Buffer.alloc(bytes), () => res.socket?.destroy());
  },
  held(res, bytes, held) {
    res.write(Buffer.alloc(bytes));
    held.push(res);
  },
  silent: (res, _bytes, held) => void held.push(res),
  dropped: (res) => res.socket?.destroy(),
};

/** Answers `/…/WAY/BYTES`, and reports this number too. */
async function startFiles(t: Test): Promise<Application> {
  const held: ServerResponse[] = [];
  const upgrades: Duplex[] = [];
  const { server, origin } = await startUpstream(t, (req, res) => {
    const [way = '', bytes = ''] = (req.url ?? '').split('/').slice(2);
    req.resume();
    res.setHeader('x-tokens', req.method === 'HEAD' ? 0 : bytes);
    res.on('error', () => undefined);
    WAYS_TO_ANSWER[req.method === 'HEAD' ? 'head' : way]?.(res, Number(bytes), held);
  });
  server.on('upgrade', (_req, socket: Duplex) => {
    socket.on('error', () => undefined);
    t.teardown(() => socket.destroy());
    upgrades.push(socket);
  });
  return { origin, held, upgrades };
}

interface Got {
  readonly status: number;
  /** Bytes of the body that the client got. */
  readonly body: number;
  /** All bytes that it got. */
  readonly all: number;
  readonly headers: IncomingMessage['headers'];
}

/** Sends a request on a connection of its own, and waits until the reply ends in any way. */
function get(port: number, path: string, method = 'GET'): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = request({ port, host: '127.0.0.1', path, method, agent: false });
    asked.on('error', reject);
    asked.on('response', (res) => {
      let body = 0;
      const { statusCode: status = 0, headers } = res;
      const socket: Socket = res.socket;
      res.on('data', (chunk: Buffer) => {
        body += chunk.length;
      });
      res.on('error', () => undefined);
      res.on('close', () => resolve({ status, body, all: socket.bytesRead, headers }));
    });
    asked.end();
  });
}

function unitsOf({ gateway }: TestGateway, policy: string): Record<string, number> {
  const samples = gateway
    .samples()
    .filter(({ name, labels }) => name === 'floodgate_policy_units_total' && labels.policy === policy);
  return Object.fromEntries(samples.map(({ labels, value }) => [labels.kind ?? '', value]));
}

class Files {
  readonly gateway: TestGateway;
  readonly app: Application;
  readonly #log: string;
  /** Requests under a policy that have begun. */
  #asked = 0;

  constructor(gateway: TestGateway, app: Application, log: string) {
    this.gateway = gateway;
    this.app = app;
    this.#log = log;
  }

  static async start(t: Test, more: Record<string, string> = {}): Promise<Files> {
    await insideLongWindow();
    const app = await startFiles(t);
    const log = join(temporaryFolder(t), 'access.log');
    const env = { GATEWAY_ACCESS_LOG: log, ...more };
    const gateway = await startTestGateway(t, { upstream: app, policies: POLICIES, env });
    return new Files(gateway, app, log);
  }

  get port(): number {
    return this.gateway.port;
  }

  begin(): void {
    this.#asked++;
  }

  /** Waits until all requests of `/files/` that have begun are settled. */
  settled(): Promise<void> {
    return until(() => unitsOf(this.gateway, 'bytes').reserved === this.#asked * RESERVE);
  }

  /** Returns what is left, with a request that costs nothing. */
  async left(): Promise<number> {
    this.begin();
    const { headers } = await get(this.port, '/files/head/40000000', 'HEAD');
    await this.settled();
    return Number(headers['x-ratelimit-remaining']) + RESERVE;
  }

  /** Returns what is left of the limit whose costs a header reports. */
  async tokensLeft(): Promise<number> {
    const { headers } = await get(this.port, '/chat/head/0', 'HEAD');
    return Number(headers['x-ratelimit-remaining']) + RESERVE;
  }

  /** Runs something that makes one request. @returns its cost */
  async costOf<T>(ask: () => Promise<T>): Promise<{ readonly cost: number; readonly got: T }> {
    const before = await this.left();
    this.begin();
    const got = await ask();
    await this.settled();
    return { cost: before - (await this.left()), got };
  }

  get(way: string, bytes: number, method?: string): Promise<{ readonly cost: number; readonly got: Got }> {
    return this.costOf(() => get(this.port, `/files/${way}/${bytes}`, method));
  }

  /** Returns the last line of the access log with this path. */
  async logged(path: string): Promise<Record<string, unknown>> {
    const lines = (): Record<string, unknown>[] => jsonLines(this.#log).filter((line) => line.path === path);
    await until(() => lines().length > 0);
    return lines().at(-1) ?? {};
  }
}

const WAYS: readonly [string, (t: Test) => Promise<Record<string, string>>][] = [
  ['memory', async () => ({})],
  ['Redis', async (t) => ({ GATEWAY_REDIS_URL: (await startRedis(t)).url })],
  ['memory, node:http reads requests', async () => ({ GATEWAY_OWN_PARSER: '0' })],
];

for (const [name, store] of WAYS) {
  t.test(name, async (t) => {
    const files = await Files.start(t, await store(t));

    t.test('a client that leaves in the middle pays what was sent', async (t) => {
      const path = '/files/without-end/0';
      const { cost, got } = await files.costOf(async () => {
        const raw = sendRaw(files.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
        await until(() => raw.received().length > 1_000_000);
        raw.socket.destroy();
        return raw.received();
      });
      const head = got.indexOf('\r\n\r\n') + 4;
      t.ok(cost >= got.length - head, `${cost} for ${got.length - head}`);
      const { bytes, cut } = await files.logged(path);
      t.equal(cut, true);
      // The last pieces may still have waited for room in the socket.
      const waited = cost - (Number(bytes) - head);
      t.ok(waited >= 0 && waited <= 200_000, `${waited} bytes more than in the access log`);
    });

    t.test('an application that breaks off costs what it has sent', async (t) => {
      const { cost, got } = await files.get('broken', 120_000);
      t.equal(got.body, 120_000);
      t.equal(cost, 120_000);
      t.equal((await files.logged('/files/broken/120000')).bytes, got.all);
    });

    t.test('a client that leaves before the reply pays no bytes, and a reported cost', async (t) => {
      const { cost } = await files.costOf(async () => {
        const { socket } = sendRaw(files.port, 'GET /files/silent/9 HTTP/1.1\r\nHost: a\r\n\r\n');
        await until(() => files.app.held.length === 1);
        socket.destroy();
      });
      t.equal(cost, 0);
      files.app.held.pop()?.destroy();
      const before = await files.tokensLeft();
      const { socket } = sendRaw(files.port, 'GET /chat/silent/900 HTTP/1.1\r\nHost: a\r\n\r\n');
      await until(() => files.app.held.length === 1);
      t.equal(await files.tokensLeft(), before - RESERVE, 'its reserve until then');
      socket.destroy();
      files.app.held.pop()?.end('nobody reads this');
      await until(async () => (await files.tokensLeft()) === before - 900);
    });

    t.test(
      'a reply of the gateway itself has no bytes that count, and keeps the reserve of a reported cost',
      async (t) => {
        const { cost, got } = await files.get('dropped', 0);
        t.equal(got.status, 502);
        t.ok(got.body > 0);
        t.equal(cost, 0);
        const before = await files.tokensLeft();
        t.equal((await get(files.port, '/chat/dropped/0')).status, 502);
        t.equal(await files.tokensLeft(), before - RESERVE);
      },
    );

    t.test('early hints report no cost', async (t) => {
      const before = await files.tokensLeft();
      await get(files.port, '/chat/hinted/33');
      t.equal(await files.tokensLeft(), before - 33);
      const { reserved = 0, given_back: back = 0, beyond = 0 } = unitsOf(files.gateway, 'ai');
      t.equal(LIMIT - (await files.tokensLeft()), reserved - back + beyond);
    });

    t.test('101: a protocol switch reports a cost, whether the client stays or leaves', async (t) => {
      const before = await files.tokensLeft();
      const head = 'GET /chat/a HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';
      for (const [i, leaves] of [false, true].entries()) {
        const { socket } = sendRaw(files.port, head);
        t.teardown(() => socket.destroy());
        await until(() => files.app.upgrades.length === 1);
        if (leaves) socket.destroy();
        const upstream = files.app.upgrades.pop();
        upstream?.resume();
        upstream?.write(
          'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nx-tokens: 60\r\n\r\n',
        );
        await until(async () => (await files.tokensLeft()) === before - 60 * (i + 1));
      }
    });

    t.test('a tunnel costs what the client has received through it', async (t) => {
      const { cost, got } = await files.costOf(async () => {
        const raw = sendRaw(
          files.port,
          'GET /files/tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
        );
        await until(() => files.app.upgrades.length === 1);
        const upstream = files.app.upgrades.pop();
        upstream?.write(
          'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
        );
        upstream?.write(Buffer.alloc(150_000));
        upstream?.resume();
        raw.socket.write(Buffer.alloc(70_000));
        await until(() => raw.received().length > 150_000);
        raw.socket.end();
        upstream?.end();
        return raw.ended();
      });
      t.equal(cost, 150_000);
      t.equal((await files.logged('/files/tunnel')).bytes, got.length);
    });

    t.test('other policies of the request are settled when its reply begins', async (t) => {
      const asked = get(files.port, '/both/held/7');
      await until(() => files.app.held.length === 1);
      await until(async () => (await get(files.port, '/both/announced/1')).status === 200);
      files.app.held.pop()?.end();
      t.equal((await asked).body, 7);
    });
  });
}

t.test('a reply that ends while the store is unavailable is charged when the store is back', async (t) => {
  const redis = await startRedis(t);
  const files = await Files.start(t, { GATEWAY_REDIS_URL: `${redis.url}?timeout_ms=500` });
  const asked = get(files.port, '/files/held/250000');
  files.begin();
  await until(() => files.app.held.length === 1);
  redis.freeze();
  // Requests without the store show the gateway that it is away.
  await until(async () => {
    await get(files.port, '/files/head/1', 'HEAD');
    files.begin();
    return files.gateway.sample('floodgate_store_unavailable') === 1;
  });
  files.app.held.pop()?.end();
  t.equal((await asked).body, 250_000);
  await files.settled();
  redis.thaw();
  await until(() => files.gateway.sample('floodgate_store_unavailable') === 0);
  // The reserve of the request in flight when the store went away may stay charged: it is charged twice, never too little.
  await until(async () => (await files.left()) <= LIMIT - 250_000);
  t.ok([LIMIT - 250_000, LIMIT - 250_000 - RESERVE].includes(await files.left()));
});

t.test('a gateway that stops cuts the reply and charges what was sent', async (t) => {
  const { url } = await startRedis(t);
  const env = { GATEWAY_REDIS_URL: url };
  const [stops, stays] = [await Files.start(t, env), await Files.start(t, env)];
  const raw = sendRaw(stops.port, 'GET /files/held/60000 HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => raw.received().length > 60_000);
  await until(async () => (await stays.left()) === LIMIT - RESERVE, 'the reserve is charged');
  await stops.gateway.gateway.close();
  await raw.ended();
  await until(async () => (await stays.left()) === LIMIT - 60_000);
});

t.test('502: an application that is down costs nothing, and has neither failed nor succeeded', async (t) => {
  await insideLongWindow();
  const upstream = `http://127.0.0.1:${await freePort()}`;
  const { port } = await startTestGateway(t, { upstream, policies: POLICIES });
  for (let i = 0; i < 3; i++) {
    const { status, headers } = await get(port, '/chat/a');
    t.strictSame([status, headers['x-ratelimit-remaining']], [502, String(LIMIT - RESERVE)]);
    for (const path of ['/both/a', '/successes']) t.equal((await get(port, path)).status, 502);
  }
});

t.test('504: an application that does not answer in time costs the reserve', async (t) => {
  const files = await Files.start(t, { GATEWAY_UPSTREAM_TIMEOUT_MS: '1000' });
  t.equal((await get(files.port, '/chat/silent/9')).status, 504);
  t.equal(await files.tokensLeft(), LIMIT - RESERVE);
});
