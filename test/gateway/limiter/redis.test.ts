/** Tests the shared store: clients in many processes, window edges, and the number of commands. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { identityOf } from '#gateway/identity/digest.ts';
import { proofKey } from '#gateway/limiter/charge.ts';
import { PROVEN_LOCALLY_MS, PROVEN_MS } from '#gateway/limiter/limiter.ts';
import { HEARTBEAT, SALT_KEY } from '#gateway/limiter/replicas.ts';
import { openStore } from '#gateway/store/open.ts';
import { testClock } from '#test/support/clock.ts';
import { startLimiter } from '#test/support/guarded-limiter.ts';
import { projectRoot } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { burst, chargeOf, identity, part, policy, spend, unproven } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

/** Starts a limiter, and counts its calls to the store, heartbeats apart. */
async function startCounted(t: Test, url: string) {
  const counted = { calls: 0 };
  const limiter = await startLimiter(t, url, {
    openStore(access, options) {
      const connection = openStore(access, options);
      const run = connection.run.bind(connection);
      connection.run = (script, keys, args) => {
        if (script !== HEARTBEAT) counted.calls++;
        return run(script, keys, args);
      };
      return connection;
    },
  });
  return { limiter, counted };
}

t.test('all requests of one tick take one command, whatever their charges', async (t) => {
  const redis = await startRedis(t);
  const { limiter, counted } = await startCounted(t, redis.url);
  const hot = chargeOf(part(policy('hot', 1000, 60), 'one'));
  await Promise.all(Array.from({ length: 100 }, () => spend(limiter, hot)));
  t.equal(counted.calls, 1, '100 requests of one identity take one command');
  const many = Array.from({ length: 100 }, (_, i) => chargeOf(part(policy('many', 5, 60), `id-${i}`)));
  await Promise.all(many.map((charge) => spend(limiter, charge)));
  t.equal(counted.calls, 2, '100 identities take two commands');
  const flood = Array.from({ length: 500 }, (_, i) =>
    chargeOf(...unproven(policy('flood', 5, 60), `f-${i}`, 'flooder')),
  );
  await Promise.all(flood.map((charge) => spend(limiter, charge)));
  t.equal(counted.calls, 2 + 8, 'a script names at most 200 keys');
});

t.test('sends proofs of one tick together, before one of them is withdrawn', async (t) => {
  const redis = await startRedis(t);
  const { limiter: store, counted } = await startCounted(t, redis.url);
  const keys = Array.from({ length: 300 }, (_, i) => identity(`key ${i}`));
  for (const key of keys) store.prove(key);
  const [first, ...others] = keys;
  if (first === undefined) throw new Error('there are keys');
  store.withdraw(first);
  await until(async () => (await redis.client.exists(...others.map(proofKey))) === others.length);
  t.equal(await redis.client.exists(proofKey(first)), 0);
  t.equal(await redis.client.ttl(proofKey(keys[1] ?? first)), PROVEN_MS / 1000);
  t.equal(counted.calls, 3, 'two commands for 300 proofs, and one to withdraw');

  store.prove(first);
  await store.close();
  t.equal(await redis.client.exists(proofKey(first)), 1, 'pending proofs are sent at the end');
});

t.test(
  'remembers as many proven keys as counters, so that each request of 100,000 clients asks for one',
  async (t) => {
    const redis = await startRedis(t);
    // The default of the product counts here, not that of the tests.
    const { known } = await startLimiter(t, redis.url, { rememberedMax: undefined });
    const keys = Array.from({ length: 100_000 }, (_, i) => identityOf(hash('sha256', `${i}`, 'base64url')));
    for (const key of keys) known.proofs.prove(key, 1);
    t.ok(keys.every((key) => known.proofs.isProven(key, 0)));
  },
);

t.test('a proof lasts 30 days after the last success, in any process', async (t) => {
  const redis = await startRedis(t);
  const clock = testClock(Date.now());
  const store = await startLimiter(t, redis.url, { clock: clock.now });
  const p = policy('renewed', 5, LONG_WINDOW_SECONDS);
  const key = identity('renewed');
  const marker = proofKey(key);
  store.prove(key);
  t.ok(store.isProofFresh(key));
  await until(async () => (await redis.client.ttl(marker)) > 0);
  clock.advance(PROVEN_LOCALLY_MS);
  t.notOk(store.isProven(key), 'the proof is known for an hour only');
  await redis.client.pexpire(marker, PROVEN_MS / 2);
  await insideLongWindow();
  const [own, ofAddress] = unproven(p, 'renewed', 'office');
  t.equal(await burst(store, chargeOf(own, ofAddress), 1), 1);
  t.ok(store.isProven(key), 'the key is still proven');
  t.notOk(store.isProofFresh(key), 'the next success is reported');
  store.prove(key);
  await until(async () => (await redis.client.pttl(marker)) > PROVEN_MS / 2, 'it lasts 30 days again');
  t.equal(await redis.client.exists(ofAddress.key), 0, 'the address is not charged');
});

t.test('an ACL user with exactly the permissions in docs/operating.md', async (t) => {
  const [, permissions = ''] =
    /^ACL SETUSER floodgate on >PASSWORD (.*)$/m.exec(
      readFileSync(join(projectRoot, 'docs/operating.md'), 'utf8'),
    ) ?? [];
  t.match(permissions, /~fg:\*/);
  const redis = await startRedis(t);
  await redis.client.call('ACL', 'SETUSER', 'floodgate', 'on', '>secret', ...permissions.split(' '));
  const store = await startLimiter(t, redis.url.replace('//', '//floodgate:secret@'));
  t.equal(await redis.client.get(SALT_KEY), 'salt');
  await insideLongWindow();
  const [own, ofAddress] = unproven(policy('acl', 5, LONG_WINDOW_SECONDS), 'key', 'address');
  t.equal(await burst(store, chargeOf(own, ofAddress), 9), 5);
  store.prove(own.identity);
  await until(async () => (await redis.client.exists(proofKey(own.identity))) === 1);
  store.withdraw(own.identity);
  await until(async () => (await redis.client.exists(proofKey(own.identity))) === 0);
  t.strictSame((await redis.client.call('ACL', 'LOG')) as unknown[], [], 'no command was refused');
});
