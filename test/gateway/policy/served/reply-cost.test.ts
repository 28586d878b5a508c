/**
 * Tests costs that a header of the reply reports, over real connections: the reserve is settled once however a request
 * ends, and every client pays the reported cost.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import t, { type Test } from 'tap';
import type { DecisionRecord } from '#gateway/refusals/decision-record.ts';
import { textOf } from '#gateway/refusals/explain.ts';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { startApplication } from '#test/support/kinds.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW } from '#test/support/window.ts';

const LIMIT = 10_000;
const RESERVE = 500;
const COST = `cost: { replyHeader: X-Tokens, reserve: ${RESERVE} }`;
const POLICIES = policyFile(
  `name: ai, route: "* /v1/chat", identifier: ip, limit: ${LIMIT}, window: ${LONG_WINDOW}, ${COST}`,
  `name: failures, route: "* /v1/failures", identifier: ip, limit: 1, window: ${LONG_WINDOW}, count: failure`,
  `name: successes, route: "* /v1/successes", identifier: ip, limit: 1, window: ${LONG_WINDOW}, count: success`,
);

interface Application {
  readonly origin: string;
  /** Held requests, which the test answers. */
  readonly held: { readonly req: IncomingMessage; readonly res: ServerResponse }[];
  readonly upgrades: Duplex[];
}

/**
 * Answers with the status in `x-status` and the fields in `x-say`. Holds requests with `x-hold`, and drops those with
 * `x-drop`.
 */
function answering(held: Application['held']): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    const { headers } = req;
    req.resume();
    if (headers['x-hold'] !== undefined) held.push({ req, res });
    else if (headers['x-drop'] !== undefined) req.socket.destroy();
    else {
      if (headers['x-early'] !== undefined)
        res.writeEarlyHints({ link: '</a>; rel=preload', 'x-tokens': '7' });
      const said: unknown = JSON.parse(String(headers['x-say'] ?? '[]'));
      res.writeHead(Number(headers['x-status'] ?? 200), said as string[]).end();
    }
  };
}

async function overHttp(t: Test): Promise<Application> {
  const held: Application['held'] = [];
  const upgrades: Duplex[] = [];
  const { server, origin } = await startUpstream(t, answering(held));
  server.on('upgrade', (_req, socket: Duplex) => {
    socket.on('error', () => undefined);
    t.teardown(() => socket.destroy());
    upgrades.push(socket);
  });
  return { origin, held, upgrades };
}

async function overTls(t: Test): Promise<Application> {
  const held: Application['held'] = [];
  const { origin } = await startApplication(t, 'https', answering(held));
  return { origin, held, upgrades: [] };
}

const inMemory = async (): Promise<Record<string, string>> => ({});
const inRedis = async (t: Test): Promise<Record<string, string>> => {
  return { GATEWAY_REDIS_URL: (await startRedis(t)).url };
};

interface Said {
  readonly path?: string;
  readonly method?: string;
  /** Fields of the application's reply, alternating names and values. */
  readonly say?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

interface Reply {
  readonly status: number;
  readonly isDenied: boolean;
  readonly headers: Headers;
  /** The tightest policy has this many units left after the reserve. */
  readonly remaining: number;
}

async function ask(
  origin: string,
  { path = '/v1/chat', method = 'POST', say = [], headers = {} }: Said = {},
): Promise<Reply> {
  const reply = await fetch(origin + path, {
    method,
    headers: { 'x-say': JSON.stringify(say), ...headers },
  });
  await reply.arrayBuffer();
  return {
    status: reply.status,
    isDenied: reply.headers.get('x-gateway-ratelimited') === 'true',
    headers: reply.headers,
    remaining: Number(reply.headers.get('x-ratelimit-remaining')),
  };
}

const reported = (units: number | string): readonly string[] => ['X-Tokens', String(units)];

/** Returns the remaining units, with a request that uses none. */
async function left(origin: string, path = '/v1/chat', headers = {}): Promise<number> {
  const reply = await ask(origin, { path, say: reported(0), headers });
  return reply.isDenied ? 0 : reply.remaining + RESERVE;
}

function unitsOf({ gateway }: TestGateway, policy: string): Record<string, number> {
  const samples = gateway
    .samples()
    .filter(({ name, labels }) => /_units_(?:missing_)?total$/.test(name) && labels.policy === policy);
  return Object.fromEntries(samples.map(({ labels, value }) => [labels.kind ?? 'missing', value]));
}

const WAYS: readonly [
  string,
  (t: Test) => Promise<Application>,
  (t: Test) => Promise<Record<string, string>>,
][] = [
  ['memory, http', overHttp, inMemory],
  ['Redis, http', overHttp, inRedis],
  ['Redis, https', overTls, inRedis],
];

for (const [name, application, store] of WAYS) {
  t.test(name, async (t) => {
    await insideLongWindow();
    const app = await application(t);
    const gateway = await startTestGateway(t, { upstream: app, policies: POLICIES, env: await store(t) });
    const { origin } = gateway;

    t.test('an early reply settles nothing', async (t) => {
      const before = await left(origin);
      await ask(origin, { say: reported(33), headers: { 'x-early': '1' } });
      t.equal(before - (await left(origin)), 33, 'not that of the 103');
    });

    t.test('a request without a reply of the application keeps its reserve', async (t) => {
      const before = await left(origin);
      t.equal((await ask(origin, { headers: { 'x-drop': '1' } })).status, 502);
      t.equal(await left(origin), before - RESERVE);
    });

    t.test('a client that leaves pays the reported cost', async (t) => {
      const before = await left(origin);
      const { socket } = sendRaw(
        gateway.port,
        'POST /v1/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nx-hold: 1\r\n\r\n',
      );
      await until(() => app.held.length === 1);
      const connected = gateway.sample('floodgate_held', { bound: 'connections' });
      socket.destroy();
      await until(
        () => gateway.sample('floodgate_held', { bound: 'connections' }) < connected,
        'the gateway knows that the client has left',
      );
      t.equal(await left(origin), before - RESERVE, 'the reserve is charged until then');
      app.held.pop()?.res.writeHead(200, { 'x-tokens': 900 }).end('nobody reads this');
      await until(async () => (await left(origin)) === before - 900);
    });

    t.test('the reserved, returned and later units add up to the usage', async (t) => {
      const { reserved = 0, given_back: back = 0, beyond = 0 } = unitsOf(gateway, 'ai');
      t.equal(LIMIT - (await left(origin)), reserved - back + beyond);
    });
  });
}

t.test('502: an application that is down costs nothing', async (t) => {
  await insideLongWindow();
  const upstream = `http://127.0.0.1:${await freePort()}`;
  const { origin } = await startTestGateway(t, { upstream, policies: POLICIES });
  for (let i = 0; i < 3; i++) {
    const { status, remaining } = await ask(origin);
    t.strictSame([status, remaining], [502, LIMIT - RESERVE]);
    // It is neither a failure nor a success of the application.
    for (const path of ['/v1/failures', '/v1/successes']) t.equal((await ask(origin, { path })).status, 502);
  }
});

t.test('504: an application that does not answer in time costs the reserve', async (t) => {
  await insideLongWindow();
  const app = await overHttp(t);
  const env = { GATEWAY_UPSTREAM_TIMEOUT_MS: '1000' };
  const { origin } = await startTestGateway(t, { upstream: app, policies: POLICIES, env });
  t.equal((await ask(origin, { headers: { 'x-hold': '1' } })).status, 504);
  t.equal(await left(origin), LIMIT - RESERVE);
});

t.test('101: a protocol switch is charged by its header', async (t) => {
  await insideLongWindow();
  const app = await overHttp(t);
  const { origin, port } = await startTestGateway(t, { upstream: app, policies: POLICIES });
  const head = 'GET /v1/chat HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';
  const switched =
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nx-tokens: 60\r\n\r\n';
  const stays = connect(port, '127.0.0.1', () => stays.write(head));
  t.teardown(() => stays.destroy());
  await until(() => app.upgrades.length === 1);
  app.upgrades.pop()?.write(switched);
  await until(async () => (await left(origin)) === LIMIT - 60);

  const leaves = connect(port, '127.0.0.1', () => leaves.write(head));
  await until(() => app.upgrades.length === 1);
  leaves.destroy();
  const socket = app.upgrades.pop();
  socket?.resume();
  socket?.write(switched);
  await until(async () => (await left(origin)) === LIMIT - 120);
});

t.test('why: tells that replies took more than was reserved', (t) => {
  const record: DecisionRecord = {
    ...{ id: '1', at: '', decision: 'deny', method: 'POST', path: '/v1/chat', policy: 'ai', line: 7 },
    ...{ file: 'p.yaml', policyVersion: '', violated: ['ai'], limit: 1000, used: 1500, cost: 500 },
    ...{ windowSeconds: 60, algorithm: 'fixed-window', endsAt: '', identity: '', identifier: 'ip' },
    ...{ isUnproven: false, addressFrom: '', decidedBy: 'store', fromMemory: false, replica: '' },
  };
  t.strictSame(textOf(record).reasons, [
    'The limit was reached: policy ai allows 1000 in 60 s, and 1500 were used; the request takes 500.',
    'More than the limit was used: replies took more units than were reserved, or the limit was lowered.',
  ]);
  t.equal(textOf({ ...record, used: 1000 }).reasons.length, 1);
  t.end();
});
