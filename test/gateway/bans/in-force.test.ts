/** Tests that a change by an operator is in force where it was asked before the call returns, and soon elsewhere. */
import t from 'tap';
import { Bans } from '#gateway/bans/bans.ts';
import { ChangeFeed } from '#gateway/bans/change-feed.ts';
import { Shadows } from '#gateway/bans/shadows.ts';
import { StoreControl } from '#gateway/bans/store-control.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { Bucket } from '#gateway/limiter/charge.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { StoreConnection } from '#gateway/store/connection.ts';
import { StoreFault } from '#gateway/store/fault.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { VirtualTime } from '#test/support/limiter-model/virtual-time.ts';
import { startRedis } from '#test/support/redis.ts';
import { part, policy } from '#test/support/spend.ts';
import { accessTo, storeAt } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW } from '#test/support/window.ts';

const ME = { subject: '127.0.0.1', kind: 'address' };

t.test('a reset, a ban, an unban and a shadow mode are in force before the command returns', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const upstream = await startUpstream(t);
  const options = {
    upstream: upstream.origin,
    policies: policyFile(`name: one, route: GET /x, identifier: ip, limit: 1, window: ${LONG_WINDOW}`),
    env: { GATEWAY_REDIS_URL: redis.url },
  };
  const asked = await startTestGateway(t, options);
  const other = await startTestGateway(t, options);
  const admin = await startTestAdmin(t, asked);
  const status = async ({ origin }: { readonly origin: string }): Promise<number> => {
    const response = await fetch(`${origin}/x`);
    await response.arrayBuffer();
    return response.status;
  };
  const command = async (method: string, path: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${admin}/api${path}`, { method, headers, body: JSON.stringify(body) });
    t.equal(response.status, 200, await response.text());
  };
  /** Lets a gateway remember that the counter is exhausted. */
  const exhaust = async (gateway: typeof asked): Promise<void> => {
    await until(async () => (await status(gateway)) === 429);
    t.equal(await status(gateway), 429);
  };

  for (let i = 0; i < 5; i++) {
    await exhaust(asked);
    await command('POST', '/reset', ME);
    t.equal(await status(asked), 200, 'a reset');
  }
  for (let i = 0; i < 3; i++) {
    await exhaust(asked);
    await exhaust(other);
    await command('POST', '/reset', ME);
    const since = performance.now();
    await until(async () => (await status(other)) === 200, 'the other gateway has forgotten the counter');
    t.comment(`a reset was in force elsewhere after ${Math.round(performance.now() - since)} ms`);
  }
  await exhaust(asked);
  await command('POST', '/shadow', { policy: 'one', seconds: 3600 });
  t.equal(await status(asked), 200, 'a shadow mode');
  await command('POST', '/ban', { ...ME, seconds: 3600 });
  t.equal(await status(asked), 429, 'a ban');
  await until(async () => (await status(other)) === 429);
  await command('POST', '/unban', ME);
  t.equal(await status(asked), 200, 'an unban');
  await until(async () => (await status(other)) === 200);
});

t.test('a late answer of another node of a Cluster does not undo a reset', async (t) => {
  const redis = await startRedis(t);
  const connection = storeAt(t, redis.url);
  await connection.connect();
  const known = new KnownCounters({ countersMax: 16, credentialsMax: 16 });
  const { counter } = part(policy('one', 1, 60));
  const bucket = new Bucket(counter, identityOf('x'.repeat(21).concat('A')));
  const shadows = new Shadows({ clock: Date.now, onChange: () => undefined });
  const parts = { connection, clock: Date.now, known, bans: new Bans(), shadows };
  const feed = new ChangeFeed({ ...parts, counters: () => [counter] });
  const control = new StoreControl(accessTo(redis.url), '', Date.now, (change) => feed.apply(change));
  t.teardown(() => control.close());
  const remember = (): void => known.set(bucket, { at: 1000, a: 1, b: 0 });
  const used = (): number => known.state(bucket, 1000).a;
  // The first change of a store makes a process forget all counters.
  await control.unban(bucket.identity);

  remember();
  await control.reset(bucket.identity, [counter]);
  t.equal(used(), 0);
  remember();
  await feed.poll();
  t.equal(used(), 0, 'forgotten again');
  remember();
  await feed.poll();
  t.equal(used(), 1, 'a later state stays');
  await redis.kill();
  await feed.apply({ cleared: bucket.identity.digest });
  t.equal(used(), 0, 'forgotten although the store does not answer');
});

t.test('changes are read twice a second, and less often from a store that answers with errors', async (t) => {
  const time = new VirtualTime(Date.UTC(2026, 0, 1));
  const clock = time.clock;
  const askedAt: number[] = [];
  let answer: Error | null = null;
  const connection: StoreConnection = {
    ready: true,
    async run() {
      askedAt.push(time.now);
      if (answer !== null) throw answer;
      return ['0', time.now];
    },
    connect: async () => undefined,
    close: () => undefined,
    slotOf: () => null,
    whyDown: () => new StoreFault('disconnected', 'down'),
  };
  const known = new KnownCounters({ countersMax: 16, credentialsMax: 16 });
  const shadows = new Shadows({ clock, onChange: () => undefined });
  const feed = new ChangeFeed({ connection, clock, known, bans: new Bans(), shadows, counters: () => [] });
  /** Returns the time between each of the next polls and the one before. */
  const pauses = async (polls: number): Promise<number[]> => {
    const from = askedAt.length;
    while (askedAt.length < from + polls) await time.fireNext(0);
    return askedAt.slice(from).map((at, i) => at - (askedAt[from + i - 1] ?? 0));
  };
  await time.run(0, () => void feed.start());
  t.strictSame(await pauses(3), [500, 500, 500]);
  answer = new StoreFault('error', 'not today');
  t.strictSame(await pauses(6), [500, 1000, 2000, 4000, 5000, 5000]);
  answer = new StoreFault('disconnected', 'it has stopped answering');
  t.strictSame(await pauses(2), [5000, 5000], 'a silence is no reason to ask more often');
  answer = null;
  t.strictSame(await pauses(2), [5000, 500]);
  answer = new StoreFault('disconnected', 'it has stopped answering');
  t.strictSame(await pauses(2), [500, 500]);
  feed.stop();
});
