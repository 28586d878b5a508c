/** Compares the forecast with a measured run: a real Redis and 20,000 clients, each with an address and a key. */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { chargeFor } from '#gateway/limiter/charge.ts';
import { BYTES_PER_RECORD } from '#gateway/limiter/counter-table.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { GuardedLimiter } from '#gateway/limiter/outage.ts';
import { RedisStore } from '#gateway/limiter/redis.ts';
import { StoreClock } from '#gateway/limiter/store-clock.ts';
import { loadPolicies } from '#gateway/policy/load.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import { forecast } from '#gateway/workbench/forecast/forecast.ts';
import { startRedis } from '#test/support/redis.ts';
import { spend } from '#test/support/spend.ts';
import { accessTo } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const IDENTITIES = 20_000;
const REQUESTS = 1000;
const POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
  api-key: { source: [{ header: x-api-key }] }
policies:
  - { name: everything, route: "* /*", identifier: ip, limit: 1000, window: 1d }
  - { name: management, route: "* /api/*", identifier: api-key, limit: 1000, window: 1d }
`;

t.test('20,000 clients: memory and commands are within a fifth', async (t) => {
  const redis = await startRedis(t);
  const set = loadPolicies(POLICIES, 'p.yaml');
  const known = new KnownCounters({ countersMax: 65_536, credentialsMax: 32_768 });
  const clock = (): number => performance.timeOrigin + performance.now();
  const unexpected = (): void => {
    t.fail('the store does not answer');
  };
  const store = new RedisStore(accessTo(redis.url), {
    clock,
    storeClock: new StoreClock(clock),
    known,
    budgetMs: 60_000,
    replica: 'r',
    onFailure: unexpected,
    onSuccess: () => {},
    onLateAnswers: unexpected,
    onUnmade: () => undefined,
    onDisconnected: () => {},
  });
  t.teardown(() => store.close());
  await store.connect();
  const found = createMatcher(set)('GET', '/api/x');
  if (!found.ok || found.cover === null) throw new Error('the route is covered');
  const { cover } = found;
  const digester = new Digester('salt');
  const request = async (client: number): Promise<void> => {
    const identities = cover.identifiers.map((identifier) => {
      if (identifier.kind === 'combined') throw new Error('none is made of several');
      return digester.identify(identifier, `client ${client}`);
    });
    const [address, key] = identities;
    if (address === undefined || key === undefined) throw new Error('both are counted');
    const charge = chargeFor(
      cover,
      { identities, proofs: null },
      () => address,
      (credential) => known.isProven(credential, clock()),
      null,
    );
    if (charge === null) throw new Error('something is charged');
    await spend(store, charge);
    if (known.isProven(key, clock())) return;
    store.proofs.prove(key);
    known.prove(key, clock() + 3_600_000);
  };
  for (let at = 0; at < IDENTITIES; at += 500)
    await Promise.all(Array.from({ length: 500 }, (_, i) => request(at + i)));

  const expected = forecast(set, { identities: IDENTITIES, requestsPerSecond: REQUESTS, processes: 1 });
  // The gateway does not wait for the store's reply to a proof.
  await until(async () => (await redis.client.dbsize()) === expected.redisKeys);
  const memory = Number(/^used_memory:(\d+)/m.exec(await redis.client.info('memory'))?.[1]);
  const share = expected.redisBytes / memory;
  t.ok(share > 0.8 && share < 1.2, `memory of Redis: ${expected.redisBytes} beside ${memory}`);

  const commands = async (): Promise<number> =>
    Number(/^total_commands_processed:(\d+)/m.exec(await redis.client.info('stats'))?.[1]);
  const before = await commands();
  // Requests come in sequence, so that no two share a script.
  for (let i = 0; i < REQUESTS; i++) await request(i);
  const sent = (await commands()) - before;
  const rate = expected.commandsPerSecond / sent;
  t.ok(rate > 0.8 && rate < 1.2, `commands of Redis: ${expected.commandsPerSecond} beside ${sent}`);

  const tables =
    expected.processBytes - forecast(set, { identities: 0, requestsPerSecond: 0, processes: 1 }).processBytes;
  t.equal(tables, 4 * IDENTITIES * BYTES_PER_RECORD, 'three counters and a proof, each of a fixed size');
});

t.test('counts nothing for an uncovered file, a shared bucket once, and names by their length', async (t) => {
  const head = 'version: 1\nidentifiers: { ip: { source: client-address } }\n';
  const none = forecast(loadPolicies(`${head}policies: []\n`, 'p.yaml'), {
    identities: 1000,
    requestsPerSecond: 500,
    processes: 2,
  });
  t.match(none, { redisKeys: 0, commandsPerSecond: 24, counters: [] });
  const long = 'a'.repeat(64);
  const two = loadPolicies(
    `${head}policies:
  - { name: ${long}, route: GET /a, identifier: ip, limit: 1, window: 1s }
  - { name: b, route: GET /b, identifier: ip, limit: 1, window: 1s, bucket: ${long} }
`,
    'p.yaml',
  );
  const whole = loadPolicies(
    `${head}policies: [{ name: a, route: "* *", identifier: everyone, limit: 1, window: 1s }]\n`,
    'p.yaml',
  );
  t.match(forecast(whole, { identities: 1000, requestsPerSecond: 5, processes: 1 }), { redisKeys: 1 });
  const found = forecast(two, { identities: 10, requestsPerSecond: 5, processes: 1 });
  t.match(found.counters, [{ policy: long, unproven: false, keys: 10 }]);
  t.equal(found.counters.length, 1);
  // Each new window takes the script, its clock, the counter and its expiry.
  t.equal(found.commandsPerSecond, 12 + 5 * 4);
});

t.test('other algorithms and requests in flight: memory and commands are within a fifth', async (t) => {
  const redis = await startRedis(t);
  const clients = 5000;
  const rate = 500;
  const rows = [
    ['sliding', 'limit: 1000, window: 1d, algorithm: sliding-window'],
    ['bucket', 'limit: 1000, window: 1d, algorithm: token-bucket'],
    ['flight', 'concurrency: 20'],
    ['plain', 'limit: 1000, window: 1d'],
  ].map(([name, quota]) => `  - { name: ${name}, route: "* /*", identifier: ip, ${quota} }`);
  const set = loadPolicies(
    `version: 1\nidentifiers: { ip: { source: client-address } }\npolicies:\n${rows.join('\n')}\n`,
    'p.yaml',
  );
  const limiter = new GuardedLimiter({
    store: accessTo(redis.url),
    clock: () => performance.timeOrigin + performance.now(),
    log: { warn: () => {}, info: () => {} },
    budgetMs: 60_000,
    replica: 'r',
    salt: 'salt',
    onSalt: () => {},
  });
  t.teardown(() => limiter.close());
  await limiter.start();
  const found = createMatcher(set)('GET', '/x');
  if (!found.ok || found.cover === null) throw new Error('the route is covered');
  const { cover } = found;
  const digester = new Digester('salt');
  const [ip] = cover.identifiers;
  if (ip === undefined || ip.kind === 'combined') throw new Error('the address is counted');
  const request = async (client: number): Promise<Spent> => {
    const address = digester.identify(ip, `client ${client}`);
    const charge = chargeFor(
      cover,
      { identities: [address], proofs: null },
      () => address,
      () => true,
      null,
    );
    if (charge === null) throw new Error('something is charged');
    const answer = await spend(limiter, charge);
    if (answer.kind !== 'spent' || !answer.admitted) throw new Error('it is admitted');
    return answer.spent;
  };
  const empty = Number(/^used_memory:(\d+)/m.exec(await redis.client.info('memory'))?.[1]);
  const open: Spent[] = [];
  for (let at = 0; at < clients; at += 500)
    open.push(...(await Promise.all(Array.from({ length: 500 }, (_, i) => request(at + i)))));
  const expected = forecast(set, { identities: clients, requestsPerSecond: rate, processes: 1 });
  t.equal(expected.redisKeys, 4 * clients);
  const memory = Number(/^used_memory:(\d+)/m.exec(await redis.client.info('memory'))?.[1]) - empty;
  const bytes = expected.redisBytes - 1_048_576;
  t.ok(bytes / memory > 0.8 && bytes / memory < 1.2, `memory of Redis: ${bytes} beside ${memory}`);
  for (const spent of open) limiter.release(spent, 0);
  await until(async () => (await redis.client.keys('*:leases')).length === 0);

  const commands = async (): Promise<number> =>
    Number(/^total_commands_processed:(\d+)/m.exec(await redis.client.info('stats'))?.[1]);
  const before = await commands();
  for (let i = 0; i < rate; i++) limiter.release(await request(i), 0);
  await until(async () => (await redis.client.keys('*:leases')).length === 0);
  const sent = (await commands()) - before;
  t.ok(
    expected.commandsPerSecond / sent > 0.8 && expected.commandsPerSecond / sent < 1.2,
    `commands of Redis: ${expected.commandsPerSecond} beside ${sent}`,
  );
});
