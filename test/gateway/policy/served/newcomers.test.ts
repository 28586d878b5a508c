/** `newcomers` on running gateways: regulars pass, and all other clients share one limit. */
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
import { recordedOf } from '#test/support/recorded.ts';
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

const DECISIONS = 'floodgate_policy_decisions_total';

/** Returns how many requests of each were admitted, as the metric of all gateways says. */
function visitors(gateways: readonly TestGateway[]): { newcomers: number; regulars: number } {
  const samples = gateways.flatMap(({ gateway }) => gateway.samples());
  const of = (client: string): number =>
    samples
      .filter(({ name, labels }) => name === 'floodgate_visitors_total' && labels.client === client)
      .reduce((sum, { value }) => sum + value, 0);
  return { newcomers: of('newcomer'), regulars: of('regular') };
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

t.test('newcomers share one exact limit on two gateways, and regulars pass', async (t) => {
  await insideLongWindow();
  await insideLongWindow(DAY_MS, 120_000);
  const redis = await startRedis(t);
  await withHistory(redis);
  await visitedYesterday(redis, '192.0.2.1');
  const { gateways, ask } = await start(t, redis);
  const [one, two] = gateways;

  const first = await ask(0, '192.0.2.1');
  t.equal(first.status, 200, 'a client of yesterday is a newcomer until its first good reply of today');
  t.match(first.headers['ratelimit-policy'], '"site.newcomers";q=5;w=31622400');
  await until(async () => (await redis.client.exists(`fg:{${client('192.0.2.1').digest}}:proven`)) === 1);
  const again = await ask(1, '192.0.2.1');
  t.equal(again.status, 200);
  t.notMatch(
    again.headers['ratelimit-policy'],
    'newcomers',
    'a regular is not charged, at the other gateway too',
  );

  t.equal(
    (await ask(0, '192.0.2.2', { 'x-api-key': 'fbk_good' })).status,
    200,
    'its first reply proves the key',
  );

  const replies = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(i, `198.51.100.${i}`)));
  t.equal(replies.filter(({ status }) => status === 200).length, 3, 'the other two of five were used before');

  for (let i = 0; i < 4; i++) t.equal((await ask(i, '192.0.2.1')).status, 200, 'a regular passes');
  for (let i = 0; i < 4; i++)
    t.equal(
      (await ask(i, `203.0.113.${i}`, { 'x-api-key': 'fbk_good' })).status,
      200,
      'so does a proven key',
    );
  t.equal((await ask(0, '203.0.113.9', { 'x-api-key': 'fbk_bad' })).status, 429, 'an invented one does not');

  const denied = await ask(1, '203.0.113.7');
  t.match(denied, { status: 429, headers: { 'retry-after': /^\d+$/, ratelimit: /"site.newcomers";r=0/ } });
  t.match(JSON.parse(denied.body.toString()), {
    code: 'gateway_newcomers',
    message: /^Many new visitors at the moment: policy site.newcomers allows newcomers together 5 /,
    'violated-policies': ['site.newcomers'],
  });
  const page = await ask(1, '203.0.113.7', { accept: 'text/html' });
  t.match(page.body.toString(), /<h1>Many new visitors at the moment<\/h1>[\s\S]*You can try again in <time/);
  const refused = replies.filter(({ status }, i) => status === 429 && i % 2 === 0);
  t.match(await recordedOf(one.gateway, refused), {
    policy: 'site.newcomers',
    identifier: 'all newcomers',
    limit: 5,
    used: 5,
  });

  t.equal(await whyOf(one, '192.0.2.1'), 'the client is a regular');
  t.match(
    await whyOf(one, '203.0.113.7'),
    'all newcomers are counted together; not counted once the client is a regular, with good replies on 2 different days within 30',
  );

  let most = 0;
  for (let i = 0; i < 30; i++) if ((await ask(i, '192.0.2.1')).status === 200) most++;
  t.equal(most, 14, 'the limit for each client goes on: six requests were made before');

  t.strictSame(visitors(gateways), { newcomers: 5, regulars: 1 + 4 + 4 + 14 });
  const labels = { policy: 'site.newcomers', decision: 'allowed' };
  t.equal(one.sample(DECISIONS, labels) + two.sample(DECISIONS, labels), 5);

  const regularOf = async (who: Identity) => {
    const named = namedByIdentity('digest', who);
    const { regular } = await inspect(named, one.gateway.policies(), one.gateway.control);
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
  const admitted = client(`198.51.100.${replies.findIndex(({ status }) => status === 200)}`);
  await until(async () => (await redis.client.exists(historyKey(admitted))) === 1);
  t.strictSame(await regularOf(admitted), { days: [dayText(today())], until: null });
  t.strictSame(await regularOf(client('203.0.113.7')), { days: [], until: null });
  const key = digester.identify({ name: 'api-key', kind: 'credential', sources: [] }, 'fbk_good');
  t.match(await regularOf(key), { days: [], until: Number }, 'a proven key needs no days');

  const excluded = loadPolicies(
    `${FILE.slice(0, -2)}, never: { network: n.txt } }`,
    'p.yaml',
    () => '192.0.2.0/24 A',
  );
  const visitor = { client: client('192.0.2.1'), address: [192, 0, 2, 1] };
  const named = { ...namedByIdentity('digest', visitor.client), visitor };
  const { regular } = await inspect(named, excluded, one.gateway.control);
  t.match(regular, { until: null, days: { length: 2 } }, 'a network that was added under never');

  await one.gateway.control.reset(client('192.0.2.1'), []);
  t.equal(await redis.client.exists(historyKey(client('192.0.2.1'))), 0, 'its days are deleted');
  const violated = async (): Promise<string[]> =>
    JSON.parse((await ask(1, '192.0.2.1')).body.toString())['violated-policies'];
  await until(
    async () => (await violated()).includes('site.newcomers'),
    'it is a newcomer at the other gateway too',
  );
});

t.test('one client or network leaves most of the limit to the others', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  await withHistory(redis);
  const policies = FILE.replace('limit: 20', 'limit: 1000').replace('limit: 5', 'limit: 200');
  const { gateways, ask } = await start(t, redis, policies);
  const admittedOf = async (clients: readonly string[]): Promise<number> => {
    const replies = await Promise.all(clients.map((from, i) => ask(i, from)));
    return replies.filter(({ status }) => status === 200).length;
  };
  const times = <T>(count: number, of: (i: number) => T): T[] =>
    Array.from({ length: count }, (_, i) => of(i));
  t.equal(await admittedOf(times(200, () => '192.0.2.1')), 10, 'a twentieth for one address');
  t.equal(await admittedOf(times(40, (i) => `198.51.100.${i}`)), 40, 'all others get in');
  t.equal(await admittedOf(times(40, (i) => `2001:db8:1::${i}`)), 10, 'a /64 is one client');
  t.equal(await admittedOf(times(100, (i) => `2001:db8:1:${i + 1}::1`)), 40, 'a quarter for its /48');
  t.equal(await admittedOf(times(40, (i) => `203.0.113.${i}`)), 40);
  t.equal(await admittedOf(times(100, (i) => `10.0.0.${i}`)), 60, 'the limit of all is as exact as before');

  const refused = await ask(0, '192.0.2.1');
  t.match(JSON.parse(refused.body.toString()), {
    code: 'gateway_newcomers',
    'violated-policies': ['site.newcomers', 'site.newcomers.client'],
  });
  await gateways[0].gateway.control.shadow('site.newcomers', 60_000);
  await until(async () => (await ask(0, '192.0.2.1')).status === 200, 'shadow mode includes the shares');
});

t.test('of the new clients of a day, one IPv6 network has a quarter', async (t) => {
  await insideLongWindow();
  await insideLongWindow(DAY_MS, 120_000);
  const redis = await startRedis(t);
  const { ask, gateways } = await start(t, redis, FILE.replace('keys:', 'newPerDay: 8, keys:'));
  await until(() => gateways.every(({ gateway }) => gateway.report(false).replicas === 2));
  const stored = async (): Promise<number> => (await redis.client.keys('fg:{*}:days')).length;
  for (let i = 0; i < 12; i++) t.equal((await ask(i, `2001:db8:1:${i}::1`)).status, 200);
  await until(async () => (await stored()) === 2);
  for (let i = 0; i < 12; i++) t.equal((await ask(i, `192.0.2.${i}`)).status, 200);
  await until(async () => (await stored()) === 8, 'all others have the rest');
});

t.test('a client that has used its share is told so', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  await withHistory(redis);
  const { ask } = await start(t, redis);
  t.equal((await ask(0, '192.0.2.1')).status, 200);
  const refused = await ask(0, '192.0.2.1');
  t.match(refused, { status: 429, headers: { ratelimit: /"site.newcomers.client";r=0/ } });
  t.match(JSON.parse(refused.body.toString()), {
    code: 'gateway_rate_limited',
    message: /policy site.newcomers.client allows 1 in/,
    'violated-policies': ['site.newcomers.client'],
  });
});

t.test('a denied newcomer is counted once, however many policies with newcomers deny it', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  await withHistory(redis);
  const row = (name: string, limit: number, mode = 'enforce'): string =>
    `name: ${name}, route: "GET /*", identifier: ip, limit: 20, window: 366d, newcomers: { limit: ${limit}, window: 366d }, mode: ${mode}`;
  const policies = policyFile(row('site', 2), row('pages', 2), row('a', 1, 'shadow'), row('b', 1, 'shadow'));
  const { gateways, ask } = await start(t, redis, policies);
  const statuses: (number | undefined)[] = [];
  for (let i = 0; i < 5; i++) statuses.push((await ask(i, `198.51.100.${i}`)).status);
  t.strictSame(statuses, [200, 200, 429, 429, 429]);
  const totals = newcomersOf(gateways.map(({ gateway }) => families(gateway.samples())));
  t.match(totals, { newcomers: 2, regulars: 0, denied: 3, shadowDenied: 1 });
});

t.test('bad replies make no regulars', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  await withHistory(redis);
  await visitedYesterday(redis, '192.0.2.1');
  const { ask } = await start(t, redis);
  t.equal((await ask(0, '192.0.2.1', {}, '/missing')).status, 404);
  t.equal((await ask(0, '192.0.2.2')).status, 200);
  await until(async () => (await redis.client.exists(historyKey(client('192.0.2.2')))) === 1);
  t.equal(
    await redis.client.get(historyKey(client('192.0.2.1'))),
    String((today() - 1) * 2 ** HISTORY_DAYS + 1),
  );
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
