/**
 * Records every decision of three gateway processes while their Redis is killed and comes back empty, and lets a judge
 * that shares no code with them read the history. `TEST_ROUNDS=100` makes a soak of it.
 */
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startUpstream } from '#test/support/gateway.ts';
import { environment, eventually, launch } from '#test/support/gateway-process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';
import { type Call, faultsOf, type History, type Rule } from './history-judge.ts';

t.setTimeout(0);

const ROUNDS = Number(process.env.TEST_ROUNDS ?? 1);
const GATEWAYS = 3;
const LIMIT = 20;
const CLIENTS = 4;
const CALLS = 40;
const AT_ONCE = 24;
const RULES: ReadonlyMap<string, Rule> = new Map([
  ['year', { kind: 'fixed', limit: LIMIT, windowMs: LONG_WINDOW_SECONDS * 1000 }],
  ['second', { kind: 'fixed', limit: LIMIT, windowMs: 1000 }],
  ['bucket', { kind: 'bucket', limit: LIMIT, windowMs: 10_000 }],
]);

t.test('the judge finds what is wrong', async (t) => {
  const call = (at: number, isAdmitted: boolean, id = `${at}`): Call => ({
    ...{ id, policy: 'second', client: 'a', sentMs: at, doneMs: at + 1, isAdmitted },
  });
  const judged = (calls: readonly Call[], more: Partial<History> = {}, rule: Partial<Rule> = {}): string[] =>
    faultsOf({
      rules: new Map([['second', { kind: 'fixed', limit: 2, windowMs: 1000, ...rule }]]),
      gateways: 2,
      outages: [],
      calls,
      received: new Map(calls.filter(({ isAdmitted }) => isAdmitted).map(({ id }) => [id, 1])),
      ...more,
    });
  const three = [call(100, true), call(200, true), call(300, true)];
  t.strictSame(judged([call(100, true), call(200, true), call(300, false), call(1100, true)]), []);
  t.match(judged(three), [/3 admitted .* at most 2/]);
  t.match(judged([call(100, true), call(300, false)]), [/refused with 1 of 2 used/]);
  t.match(judged(three, {}, { kind: 'bucket', windowMs: 60_000 }), [/3 admitted/]);
  t.strictSame(
    judged([call(100, true), call(200, true), call(700, true)], {}, { kind: 'bucket' }),
    [],
    'it drains',
  );
  const outage = { fromMs: 150, toMs: 250, hasLostData: false };
  t.strictSame(judged(three, { outages: [outage] }), [], 'a gateway alone admits its share again');
  t.match(judged([...three, call(400, true)], { outages: [outage] }), [/4 admitted .* at most 3/]);
  t.strictSame(judged([...three, call(400, true)], { outages: [{ ...outage, hasLostData: true }] }), []);
  t.match(
    judged([call(100, false)], { received: new Map([['100', 1]]) }),
    [/refused with 0/, /received 1 times/].reverse(),
  );
  t.match(judged([call(100, true)], { received: new Map() }), [/received 0 times/]);
  t.match(
    judged([call(100, true)], {
      received: new Map([
        ['100', 1],
        ['x', 1],
      ]),
    }),
    [/never sent/],
  );
});

interface Running {
  readonly ports: readonly number[];
  readonly agent: Agent;
  readonly calls: Call[];
}

let clients = 0;

/** Sends requests of new clients to all gateways. @param onHalf called when half of them have been sent */
async function drive(
  { ports, agent, calls }: Running,
  onHalf: () => unknown = () => undefined,
): Promise<void> {
  const first = clients;
  clients += CLIENTS;
  const asks = Array.from({ length: CALLS }, () =>
    Array.from({ length: CLIENTS }, (_, i) =>
      [...RULES.keys()].map((policy) => ({ policy, client: `10.0.0.${first + i}` })),
    ),
  ).flat(2);
  let next = 0;
  let half: unknown;
  const worker = async (): Promise<void> => {
    for (;;) {
      const i = next++;
      const ask = asks[i];
      if (ask === undefined) return;
      if (i === asks.length >> 1) half = onHalf();
      const id = `${first}-${i}`;
      const sentMs = Date.now();
      const headers = { 'x-forwarded-for': ask.client, 'x-call': id };
      const { status } = await send(ports[i % ports.length] ?? 0, `/${ask.policy}`, { agent, headers });
      if (status !== 200 && status !== 429) throw new Error(`${id}: ${status}`);
      calls.push({ ...ask, id, sentMs, doneMs: Date.now(), isAdmitted: status === 200 });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await half;
}

async function startGateways(
  t: Test,
  redis: string,
  upstream: string,
): Promise<readonly Record<string, string>[]> {
  const file = join(temporaryFolder(t), 'policies.yaml');
  const row = (name: string, rest: string): string =>
    `name: ${name}, route: GET /${name}, identifier: ip, limit: ${LIMIT}, ${rest}`;
  writeFileSync(
    file,
    policyFile(
      row('year', 'window: 366d'),
      row('second', 'window: 1s'),
      row('bucket', 'window: 10s, algorithm: token-bucket'),
    ),
  );
  return Promise.all(
    Array.from({ length: GATEWAYS }, async () => {
      const env = await environment({
        ...BEHIND_PROXY,
        GATEWAY_UPSTREAM: upstream,
        GATEWAY_REDIS_URL: redis,
        GATEWAY_POLICIES: file,
      });
      await launch(t, env);
      return env;
    }),
  );
}

t.test('three gateways keep every limit, also when Redis is killed and comes back empty', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const received = new Map<string, number>();
  const upstream = await startUpstream(t, (req, res) => {
    const id = String(req.headers['x-call']);
    received.set(id, (received.get(id) ?? 0) + 1);
    res.end();
  });
  const gateways = await startGateways(t, redis.url, upstream.origin);
  interface Store {
    readonly available: boolean;
    readonly replicas: number;
  }
  /** Waits until each gateway knows the others, and has its store. */
  const ready = async (): Promise<void> => {
    for (const { GATEWAY_ADMIN_PORT } of gateways)
      await eventually(
        'all gateways and the store',
        async () =>
          ((await (await fetch(`http://127.0.0.1:${GATEWAY_ADMIN_PORT}/api/top`)).json()) as { store: Store })
            .store,
        ({ available, replicas }) => available && replicas === GATEWAYS,
      );
  };
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const calls: Call[] = [];
  const running = { ports: gateways.map(({ GATEWAY_PORT }) => Number(GATEWAY_PORT)), agent, calls };
  const outages: { fromMs: number; toMs: number; hasLostData: boolean }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await ready();
    await drive(running);
    const fromMs = Date.now();
    await drive(running, () => redis.kill());
    await drive(running, () => redis.restart());
    await ready();
    outages.push({ fromMs, toMs: Date.now(), hasLostData: true });
  }
  await ready();
  await drive(running);
  const faults = faultsOf({ rules: RULES, gateways: GATEWAYS, outages, calls, received });
  t.strictSame(faults.slice(0, 10), [], `${calls.length} decisions, ${faults.length} faults`);
  const refused = calls.filter(({ isAdmitted }) => !isAdmitted).length;
  t.ok(refused > 0 && refused < calls.length, `${refused} refused`);
});
