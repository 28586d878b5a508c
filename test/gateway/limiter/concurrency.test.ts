/** Tests leases of requests in flight: they are taken, returned, renewed, and expire. */
import { equal } from 'node:assert/strict';
import t from 'tap';
import { LEASE_MS } from '#gateway/algorithms/concurrency.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import { leasesOf, RELEASE, RENEWED_AFTER_MS } from '#gateway/limiter/leases.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { fc } from '#test/support/fast-check.ts';
import { processClock, startLimiter } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { asking, startScript } from '#test/support/script.ts';
import { burst, chargeOf, memoryLimiter, part, policy, spend } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';

const inFlight = (name: string, limit: number, more: Partial<Policy> = {}): Policy =>
  policy(name, limit, 0, { algorithm: 'concurrency', ...more });

/** Returns an admitted request. */
interface Admitted {
  readonly spent: Spent;
  readonly position: number;
}

async function admitted(limiter: Parameters<typeof spend>[0], ...of: readonly Bucket[]): Promise<Admitted> {
  const answer = await spend(limiter, chargeOf(...of));
  if (answer.kind !== 'spent' || !answer.admitted) throw new Error('it is not admitted');
  return answer;
}

type Event =
  | { readonly kind: 'ask'; readonly policies: readonly number[]; readonly times: number }
  | { readonly kind: 'end'; readonly which: number };

t.test('random requests that begin and end: Redis and memory agree', async (t) => {
  const redis = await startRedis(t);
  const store = await startLimiter(t, redis.url);
  const event = fc.oneof<fc.Arbitrary<Event>[]>(
    fc.record({
      kind: fc.constant('ask' as const),
      policies: fc.uniqueArray(fc.nat(3), { minLength: 1 }),
      times: fc.integer({ min: 1, max: 4 }),
    }),
    fc.record({ kind: fc.constant('end' as const), which: fc.nat(20) }),
  );
  const row = fc.record({ limit: fc.integer({ min: 1, max: 5 }), shadow: fc.boolean() });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 3, maxLength: 3 }),
      fc.array(event, { minLength: 3, maxLength: 25 }),
      async (rows, events) => {
        run++;
        const memory = memoryLimiter({ clock: processClock });
        const policies = [
          ...rows.map(({ limit, shadow }, i) =>
            inFlight(`p${i}`, limit, { mode: shadow ? 'shadow' : 'enforce' }),
          ),
          policy('window', 40, 10 * 86_400),
        ];
        const open: { readonly ofStore: Admitted; readonly ofMemory: Admitted }[] = [];
        for (const event of events) {
          if (event.kind === 'end') {
            const [one] = open.splice(event.which % Math.max(1, open.length), 1);
            if (one === undefined) continue;
            store.release(one.ofStore.spent, one.ofStore.position);
            memory.release(one.ofMemory.spent, one.ofMemory.position);
            continue;
          }
          const charge = chargeOf(
            ...event.policies.map((number) => part(policies[number] as Policy, `${run}`)),
          );
          const answers = await Promise.all(
            Array.from({ length: event.times }, async () =>
              Promise.all([spend(store, charge), spend(memory, charge)]),
            ),
          );
          for (const [ofStore, ofMemory] of answers) {
            if (ofStore.kind !== 'spent' || ofMemory.kind !== 'spent') throw new Error('both answer');
            equal(ofStore.admitted, ofMemory.admitted);
            if (ofStore.admitted) open.push({ ofStore, ofMemory });
          }
        }
        for (const { ofStore, ofMemory } of open) {
          store.release(ofStore.spent, ofStore.position);
          memory.release(ofMemory.spent, ofMemory.position);
        }
        const keys = policies.slice(0, 3).map((of) => part(of, `${run}`).key);
        await until(async () => (await redis.client.exists(...keys)) === 0);
      },
    ),
    { numRuns: 150 },
  );
});

t.test('a lease that nobody renews expires by the clock of the store', async (t) => {
  const { redis, ask: askScript } = await startScript(t);
  const one = part(inFlight('crashed', 2), 'one');
  let named = 0;
  const ask = async (times: number, seconds: number): Promise<Spent> => {
    const [answer] = await askScript(seconds * 1000, [asking(one, times, `n${named++}`)]);
    if (answer === undefined) throw new Error('it answers');
    return answer.spent;
  };
  const begun = Math.floor(Date.now() / 1000);
  const first = await ask(3, begun);
  t.equal(first.admitted, 2);
  t.equal((await ask(1, begun + LEASE_MS / 1000 - 1)).admitted, 0);
  t.equal(
    (await ask(1, begun + LEASE_MS / 1000)).admitted,
    1,
    'one place is free, because two leases have expired',
  );
  t.equal(await redis.client.zcard(one.key), 1, 'the expired leases are deleted');
  const [lease] = [...leasesOf(first, 0)];
  t.equal(lease?.member, 'n0.0');
  await redis.client.eval(RELEASE.lua, 1, one.key, lease?.member ?? '');
  t.equal(await redis.client.zcard(one.key), 1, 'giving back an expired lease changes nothing');
  const ttl = await redis.client.pttl(one.key);
  t.ok(ttl > 0 && ttl <= LEASE_MS + 1000, `the whole counter expires: ${ttl}`);
});

t.test('long requests renew their leases, also at a store that lost them', async (t) => {
  const redis = await startRedis(t);
  let aheadMs = 0;
  const limiter = await startLimiter(t, redis.url, { clock: () => processClock() + aheadMs });
  const one = part(inFlight('long', 5), 'one');
  const held = await Promise.all([1, 2, 3].map(() => admitted(limiter, one)));
  const [first] = held;
  if (first === undefined) throw new Error('there are three');
  limiter.release(first.spent, first.position);
  await until(async () => (await redis.client.zcard(one.key)) === 2);
  await redis.client.del(one.key);
  aheadMs = RENEWED_AFTER_MS + 1;
  await until(async () => (await redis.client.zcount(one.key, Date.now(), '+inf')) === 2);
  const ttl = await redis.client.pttl(one.key);
  t.ok(ttl > LEASE_MS / 2, `the lease is renewed for its whole time: ${ttl}`);
  for (const { spent, position } of held) limiter.release(spent, position);
  await until(async () => (await redis.client.exists(one.key)) === 0);
});

t.test('in a Cluster: if one node denies, the others give back what they took', async (t) => {
  const cluster = await startCluster(t);
  const limiter = await startLimiter(t, cluster.url);
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const wide = inFlight('wide', 20);
  const narrow = inFlight('narrow', 2);
  const [full] = names;
  await burst(limiter, chargeOf(part(narrow, full)), 2);
  for (const name of names) {
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        spend(limiter, chargeOf(part(wide, name), part(narrow, `other-${name}`))),
      ),
    );
    t.equal(answers.filter((answer) => answer.kind === 'spent' && answer.admitted).length, 2, name);
    for (const answer of answers)
      if (answer.kind === 'spent' && answer.admitted) limiter.release(answer.spent, answer.position);
    const used = async (of: Policy, who: string): Promise<number> => {
      const answer = await spend(
        limiter,
        chargeOf(part({ ...of, limit: 1, capacity: 1, mode: 'shadow' }, who)),
      );
      if (answer.kind === 'spent') limiter.release(answer.spent, answer.position);
      return answer.kind === 'spent' ? (answer.spent.states[0]?.used ?? -1) : -1;
    };
    await until(async () => (await used(wide, name)) === 0 && (await used(narrow, `other-${name}`)) === 0);
  }
});
