/** Commands of operators during traffic: over memory, Redis with several workers, and a Cluster. */
import { appendFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { eventually } from '#test/support/gateway-process.ts';
import { type Operator, startOperator } from '#test/support/operator.ts';
import { startRedis } from '#test/support/redis.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { until } from '#test/support/until.ts';

const STORES: Record<string, (t: Test) => Promise<Record<string, string>>> = {
  memory: async () => ({}),
  'Redis, two workers': async (t) => ({ GATEWAY_REDIS_URL: (await startRedis(t)).url, GATEWAY_WORKERS: '2' }),
  Cluster: async (t) => ({ GATEWAY_REDIS_URL: (await startCluster(t)).url }),
};

for (const [name, environment] of Object.entries(STORES)) {
  t.test(name, async (t) => {
    const operator = await startOperator(t, await environment(t));
    await explains(t, operator);
    await resets(t, operator);
    await bansAndUnbans(t, operator);
    await shadows(t, operator);
  });
}

async function explains(t: Test, { send, ask }: Operator): Promise<void> {
  t.match(await ask('explain', 'GET /items'), { code: 0, document: { decision: 'allow' } });
  t.strictSame(await send(2), [200, 200]);
  t.match(
    await ask('explain', 'GET /items'),
    { code: 0, document: { policies: [{ name: 'items', used: 2, remaining: 1 }, {}] } },
    'explain shows the live counter',
  );
  t.strictSame(await send(2), [200, 429], 'explain charges nothing');
  const denied = await ask('explain', 'GET /items');
  t.match(denied, {
    code: 1,
    document: { decision: 'deny', status: 429, headers: { 'x-gateway-ratelimited': 'true' } },
  });
  t.match((denied.document.headers as Record<string, string>)['Retry-After'], /^[1-9]\d*$/);

  t.strictSame(await send(2, '/keys', { 'x-api-key': 'works' }), [200, 200]);
  const proven = await ask('explain', 'GET /keys', '-H', 'x-api-key: works');
  t.match(proven.document, { policies: [{}, { name: 'keys', used: 2, remaining: 1 }] });
  const invented = await ask('explain', 'GET /keys', '-H', 'x-api-key: invented');
  t.match(invented.document, { policies: [{}, { reason: /unproven|not proven/, used: 0 }] });
}

async function resets(t: Test, { send, ask }: Operator): Promise<void> {
  const inspected = await ask('inspect', '127.0.0.1');
  const items = { policy: 'items', used: 3, limit: 3, resetAt: /T00:00:00.000Z$/ };
  t.match(inspected, { code: 0, document: { identity: /^[\w-]{22}$/, buckets: [items], banned: false } });
  const key = await ask('inspect', '--key', 'works');
  t.match(key.document, { buckets: [{ policy: 'keys', used: 2 }] });
  t.not(key.document.identity, inspected.document.identity);
  const again = await ask('inspect', '--digest', String(key.document.identity));
  t.strictSame(again.document, { ...key.document, kind: 'digest' }, 'the digest finds the same client');

  t.equal((await send(6)).filter((status) => status === 200).length, 0, 'exhausted for every worker');
  // The address's own usage, and its usage with keys before they had worked.
  t.match(await ask('reset', '127.0.0.1'), { code: 0, document: { buckets: [], cleared: 2 } });
  let admitted = 0;
  await eventually(
    'every process forgets what it knew',
    async () => {
      for (const status of await send(1)) if (status === 200) admitted++;
      return admitted;
    },
    (count) => count === 3,
  );
  t.equal((await send(6)).filter((status) => status === 200).length, 0, 'the limit applies again');
}

async function bansAndUnbans(t: Test, { send, ask, gateway, process }: Operator): Promise<void> {
  const banned = await ask('ban', '--key', 'works', '--for', '1h', '--reason', 'a test');
  t.match(banned, { code: 0, document: { banned: true, ban: { reason: 'a test' } } });
  const headers = { 'x-api-key': 'works' };
  // Sends to a route without a policy.
  const statuses = async () => new Set(await send(8, '/open', headers));
  await eventually('banned everywhere', statuses, (seen) => seen.size === 1 && seen.has(429));
  const refused = await fetch(`${gateway}/open`, { headers });
  t.equal(refused.headers.get('x-gateway-ratelimited'), 'true');
  const retryAfter = Number(refused.headers.get('retry-after'));
  t.ok(retryAfter > 3500 && retryAfter <= 3600, `Retry-After: ${retryAfter}`);
  t.match(await refused.json(), { code: 'gateway_banned', message: /blocked/, details: {} });
  t.strictSame(await send(1, '/open'), [200], 'other paths are not affected');
  const explained = await ask('explain', 'GET /open', '-H', 'x-api-key: works');
  t.match(explained, {
    code: 1,
    document: { decision: 'deny', status: 429, reason: /banned until.*a test/ },
  });
  t.match(await ask('inspect', '--key', 'works'), { document: { banned: true } });

  t.match(await ask('unban', '--key', 'works'), { code: 0, document: { banned: false, changed: true } });
  await eventually('let in', statuses, (seen) => seen.size === 1 && seen.has(200));
  t.match(await ask('unban', '--key', 'works'), { code: 1, document: { changed: false } });

  await ask('ban', '127.0.0.1');
  await until(async () => (await send(1, '/open').then(([status]) => status)) === 429, 'the address');
  const digest = String(banned.document.identity);
  t.match(process.output(), new RegExp(`"change":"ban","identity":"${digest}"`), 'changes are logged');
  t.notMatch(process.output(), 'works', 'no key is logged');
}

async function shadows(t: Test, { send, ask, policyFile, process }: Operator): Promise<void> {
  await ask('unban', '127.0.0.1');
  const statuses = async () => new Set(await send(6));
  const all = (status: number) => (seen: Set<number>) => seen.size === 1 && seen.has(status);
  await eventually('exhausted', statuses, all(429));
  const shadowed = await ask('shadow', 'items', '--for', '2d');
  t.match(shadowed, { code: 0, document: { policies: ['items'], shadowEndsAt: /Z$/, changed: true } });
  await eventually('it passes', statuses, all(200));
  t.match(await ask('explain', 'GET /items'), { document: { policies: [{ reason: /shadow/ }, {}] } });
  appendFileSync(policyFile, '# edited\n');
  await process.until(/the edited policy file is in use/);
  t.ok(all(200)(await statuses()), 'an edit does not end the shadow');
  t.match(await ask('unshadow', 'items'), { code: 0, document: { changed: true, shadowEndsAt: null } });
  await eventually('it denies again', statuses, all(429));
  t.match(await ask('unshadow', 'items'), { code: 1, document: { changed: false } });
  t.match(process.output(), /"change":"shadow","policy":"items","seconds":172800/);
}
