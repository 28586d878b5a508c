/** `newcomers` with histories and outages. Who is counted is in test/policies/newcomers.yaml. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Digester, type Identity } from '#gateway/identity/digest.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { historyKey } from '#gateway/limiter/history.ts';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { explainLive } from '#gateway/operate/admin/explain-live.ts';
import { inspect } from '#gateway/operate/admin/inspect.ts';
import { namedByIdentity } from '#gateway/operate/admin/subject.ts';
import { newcomersOf } from '#gateway/operate/admin/top.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { DAY_MS, HISTORY_DAYS } from '#gateway/policy/groups.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import {
  BEHIND_PROXY,
  policyFile,
  startTestGateway,
  startUpstream,
  type TestGateway,
} from '#test/support/gateway.ts';
import { environment, launch } from '#test/support/gateway-process.ts';
import { freePort } from '#test/support/ports.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const FILE = `${policyFile(
  'name: site, route: "GET /*", identifier: ip, limit: 20, window: 366d, newcomers: { limit: 5, window: 366d }',
)}
regulars: { keys: [api-key] }`;

const digester = new Digester('salt of the tests');
const { digest: name } = digester.identify(EVERYONE, '');

function client(address: string): Identity {
  return digester.identify({ name: 'ip', kind: 'address', ipv6Prefix: 64 }, address);
}

/** Explains a request of a client with the counters of the gateway. @returns why `newcomers` counts it or not */
async function whyOf({ gateway }: TestGateway, address: string): Promise<string | undefined> {
  const request = { method: 'GET', target: '/a', rawHeaders: [], socket: { remoteAddress: address } };
  const options = { trust: { kind: 'none' }, control: gateway.control, clock: Date.now } as const;
  const { policies } = await explainLive(request, gateway.policies(), options);
  return policies.find(({ name }) => name === 'site.newcomers')?.reason;
}

const today = (): number => Math.floor(Date.now() / DAY_MS);

/** Histories began a week ago, so `newcomers` acts. */
async function withHistory({ client: redis }: RedisServer): Promise<void> {
  await redis.set(`fg:{control}:history:${name}`, Date.now() - 7 * DAY_MS);
}

/** This client was here on the day before. */
async function visitedYesterday({ client: redis }: RedisServer, address: string): Promise<void> {
  await redis.set(historyKey(client(address)), String((today() - 1) * 2 ** HISTORY_DAYS + 1));
}

async function start(t: Test, redis: RedisServer, policies = FILE) {
  const upstream = await startUpstream(t, (req, res) => {
    const { 'x-api-key': key } = req.headers;
    res.writeHead(key !== undefined && key !== 'fbk_good' ? 401 : req.url === '/missing' ? 404 : 200).end();
  });
  const env = { ...BEHIND_PROXY, GATEWAY_REDIS_URL: redis.url };
  const gateways = [
    await startTestGateway(t, { upstream, policies, env }),
    await startTestGateway(t, { upstream, policies, env }),
  ] as const;
  const ask = (i: number, from: string, headers: Record<string, string> = {}, path = '/a') =>
    send(gateways[i % 2 === 0 ? 0 : 1].port, path, { headers: { 'x-forwarded-for': from, ...headers } });
  return { gateways, ask };
}

t.test('an operator sees on which days a client was here, and a reset deletes them', async (t) => {
  await insideLongWindow();
  await insideLongWindow(DAY_MS, 120_000);
  const redis = await startRedis(t);
  await withHistory(redis);
  await visitedYesterday(redis, '192.0.2.1');
  const { gateways, ask } = await start(t, redis);
  const { control, policies } = gateways[0].gateway;
  for (const from of ['192.0.2.1', '192.0.2.2']) await ask(0, from);
  await ask(0, '192.0.2.3', { 'x-api-key': 'fbk_good' });
  await until(async () => (await redis.client.exists(historyKey(client('192.0.2.2')))) === 1);
  await until(async () => (await redis.client.exists(`fg:{${client('192.0.2.1').digest}}:proven`)) === 1);
  t.equal(await whyOf(gateways[0], '192.0.2.1'), 'the client is a regular');
  t.match(await whyOf(gateways[0], '203.0.113.7'), 'not counted once the client is a regular');

  const regularOf = async (who: Identity, set = policies(), named = namedByIdentity('digest', who)) => {
    const { regular } = await inspect(named, set, control);
    // Redis has its own clock.
    const until = regular?.until == null ? null : Math.round(Date.parse(regular.until) / 1000);
    return { days: regular?.days, until };
  };
  const dayText = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);
  t.strictSame(
    await regularOf(client('192.0.2.1')),
    { days: [dayText(today() - 1), dayText(today())], until: ((today() + 29) * DAY_MS) / 1000 },
    'a regular for thirty days from the first day on',
  );
  t.strictSame(await regularOf(client('192.0.2.2')), { days: [dayText(today())], until: null });
  t.strictSame(await regularOf(client('203.0.113.7')), { days: [], until: null });
  const key = digester.identify({ name: 'api-key', kind: 'credential', sources: [] }, 'fbk_good');
  t.match(await regularOf(key), { days: [], until: Number }, 'a proven key needs no days');
  const never = `${FILE.slice(0, -2)}, never: { network: n.txt } }`;
  const visitor = { client: client('192.0.2.1'), address: [192, 0, 2, 1] };
  const named = { ...namedByIdentity('digest', visitor.client), visitor };
  const excluded = loadPolicies(never, 'p.yaml', () => '192.0.2.0/24 A');
  t.match(await regularOf(visitor.client, excluded, named), { until: null, days: { length: 2 } });

  await control.reset(visitor.client, []);
  t.equal(await redis.client.exists(historyKey(visitor.client)), 0);
  const isCounted = async (): Promise<boolean> =>
    /newcomers/.test(String((await ask(1, '192.0.2.1')).headers['ratelimit-policy']));
  await until(isCounted, 'it is a newcomer at the other gateway too');
});

t.test('a new installation denies nobody', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const { gateways, ask } = await start(t, redis);
  const [one] = gateways;
  const key = `fg:{control}:history:${name}`;
  const began = Number(await redis.client.get(key));
  t.ok(Math.abs(began - Date.now()) < DAY_MS / 24, 'the history begins now, not at midnight');
  const actsFrom = new Date(began + 2 * DAY_MS).toISOString();
  await one.logged(new RegExp(`"actsFrom":"${actsFrom}".*deny nobody yet`));
  t.match(await whyOf(one, '192.0.2.1'), `it acts from ${actsFrom}, when enough history exists`);
  const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(i, `192.0.2.${i}`)));
  t.ok(replies.every(({ status }) => status === 200));
  const shadowDenied = (): number =>
    gateways.reduce((sum, { sample }) => {
      const labels = { policy: 'site.newcomers', decision: 'shadow_denied' };
      return sum + Math.max(0, sample('floodgate_policy_decisions_total', labels));
    }, 0);
  t.equal(shadowDenied(), 15, 'the limit is counted');

  await redis.client.set(key, began - 2 * DAY_MS);
  await one.logged(/policies with newcomers act/);
  let clients = 0;
  /** Sends requests of clients that were never here, and returns the codes of the refusals. */
  const newcomers = async (count: number): Promise<unknown[]> => {
    const replies = await Promise.all(
      Array.from({ length: count }, (_, i) => ask(i, `10.0.${++clients >> 8}.${clients & 255}`)),
    );
    return replies.flatMap(({ status, body }) => (status === 200 ? [] : [JSON.parse(body.toString()).code]));
  };
  await until(
    async () => (await newcomers(2)).includes('gateway_newcomers'),
    'the limit acts from that date',
  );

  const since = async (): Promise<number> => Number(await redis.client.get(key));
  await redis.client.set(key, Date.now() + 90 * DAY_MS);
  await until(async () => (await since()) === began - 2 * DAY_MS, 'a clock that was wrong does not stop it');
});

t.test('a gateway that has not reached its store says that the limit does not act', async (t) => {
  const { gateway, origin } = await startTestGateway(t, {
    policies: FILE,
    env: { GATEWAY_REDIS_URL: `redis://127.0.0.1:${await freePort()}` },
  });
  for (let i = 0; i < 7; i++) t.equal((await fetch(origin)).status, 200);
  const totals = newcomersOf([families(gateway.samples())]);
  t.match(totals, { newcomers: 7, denied: 0, acts: false, actsFrom: null });
  const { samples } = gateway;
  const acting = samples().filter(({ name }) => name === 'floodgate_newcomers_act_from_timestamp_seconds');
  t.match(acting, [{ value: -1 }]);
});

t.test('without the store, a gateway lets in the regulars that it knows', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  await withHistory(redis);
  await visitedYesterday(redis, '192.0.2.1');
  const { gateways, ask } = await start(t, redis);
  const [one] = gateways;
  await until(() => one.gateway.report(false).replicas === 2);
  t.equal((await ask(0, '192.0.2.1')).status, 200);
  const isRegular = async (): Promise<boolean> =>
    !String((await ask(0, '192.0.2.1')).headers['ratelimit-policy']).includes('newcomers');
  await until(isRegular, 'its second day makes it a regular');
  await redis.kill();
  await until(() => !one.gateway.report(false).storeAvailable);
  const replies = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(0, `198.51.100.${i}`)));
  const admitted = replies.filter(({ status }) => status === 200).length;
  t.ok(
    admitted === 1 || admitted === 2,
    `${admitted}: the share of a gateway is 2 or 3, and one was used before`,
  );
  for (let i = 0; i < 3; i++) t.equal((await ask(0, '192.0.2.1')).status, 200, 'a regular passes');
});

t.test('without Redis, histories begin when a reload adds newcomers', async (t) => {
  const upstream = await startUpstream(t);
  const file = join(temporaryFolder(t), 'policies.yaml');
  writeFileSync(file, FILE.replace(/, newcomers: {[^}]*}|^regulars.*$/gm, ''));
  const gateway = await launch(
    t,
    await environment({ GATEWAY_UPSTREAM: upstream.origin, GATEWAY_POLICIES: file }),
  );
  const before = performance.timeOrigin + performance.now();
  writeFileSync(file, FILE);
  await gateway.until(/deny nobody yet/);
  const [, actsFrom = ''] = /"actsFrom":"([^"]+)"/.exec(gateway.output()) ?? [];
  t.ok(Date.parse(actsFrom) > before + 2 * DAY_MS - DAY_MS / 24, actsFrom);
});
