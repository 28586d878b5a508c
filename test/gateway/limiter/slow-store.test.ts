/** A slow store makes replies slow, not wrong: every window admits exactly its limit. */
import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Bucket } from '#gateway/limiter/charge.ts';
import { GuardedLimiter } from '#gateway/limiter/outage.ts';
import { startLimiter, untilAway } from '#test/support/guarded-limiter.ts';
import { ModelConnection } from '#test/support/limiter-model/model-connection.ts';
import { ModelStore } from '#test/support/limiter-model/model-store.ts';
import { VirtualTime } from '#test/support/limiter-model/virtual-time.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { startWatchedRedis } from '#test/support/redis-sentinel.ts';
import { seededRandom } from '#test/support/seed.ts';
import { everyHundredth, startSlowProxy } from '#test/support/slow-proxy.ts';
import { type Answer, burst, chargeOf, part, policy, spend } from '#test/support/spend.ts';
import { accessTo } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const LIMIT = 100;
/** The default of timeout_ms in GATEWAY_REDIS_URL. */
const BUDGET_MS = 50;
/**
 * No delay of these tests takes so long, also on a busy machine. The tests below that run on virtual time have the exact
 * time after which the default budget gives up.
 */
const PATIENT_MS = 1000;

const long = (name: string, limit: number) => policy(name, limit, LONG_WINDOW_SECONDS);

/** Starts gateways, each with its own clock and connection, and waits until all know each other. */
async function gateways(
  t: Test,
  url: string,
  count: number,
  budgetMs: number,
): Promise<readonly GuardedLimiter[]> {
  const all: GuardedLimiter[] = [];
  for (let i = 0; i < count; i++) all.push(await startLimiter(t, url, { budgetMs }));
  await until(() => all.every((one) => one.stats().replicas === count));
  return all;
}

/** Sends more requests than the limit, a few at a time from every gateway. @returns the number of admitted requests */
async function fill(all: readonly GuardedLimiter[], who: string): Promise<number> {
  // With an open circuit every request is decided at once, so the store must get time to answer.
  await turn();
  const charge = chargeOf(part(long('p', LIMIT), who));
  const each = Math.ceil((1.5 * LIMIT) / all.length / 5);
  let admitted = 0;
  await Promise.all(
    all.map(async (limiter) => {
      for (let i = 0; i < each; i++) {
        const passed = await burst(limiter, charge, 5);
        admitted += passed;
      }
    }),
  );
  return admitted;
}

function isExact(t: Test, all: readonly GuardedLimiter[], admitted: readonly number[]): void {
  const wrong = admitted.filter((count) => count !== LIMIT);
  t.strictSame(wrong, [], `${admitted.length} windows admit exactly their limit`);
  for (const one of all) t.match(one.stats(), { outages: 0, degraded: 0 }, 'late answers cause no outage');
}

/** Reads the store's count. */
async function counted(redis: Pick<RedisServer, 'client'>, key: string): Promise<number> {
  return Number((await redis.client.get(key)) ?? 0) % 2 ** 32;
}

for (const count of [2, 4]) {
  t.test(`every hundredth answer is 30 to 300 ms late, ${count} gateways: windows are exact`, async (t) => {
    const redis = await startRedis(t);
    const proxy = await startSlowProxy(t, redis.port, everyHundredth(seededRandom(count)));
    await insideLongWindow();
    const all = await gateways(t, `redis://127.0.0.1:${proxy.port}`, count, PATIENT_MS);
    const admitted: number[] = [];
    for (let window = 0; proxy.delayed < 12 && window < 200; window++)
      admitted.push(await fill(all, `window-${window}`));
    isExact(t, all, admitted);
  });
}

/** Stalls a store for 50 to 300 ms now and then until `work` is done. */
async function withStalls(
  servers: readonly Pick<RedisServer, 'freeze' | 'thaw'>[],
  random: () => number,
  work: (stalls: () => number) => Promise<void>,
): Promise<void> {
  let isOver = false;
  let stalls = 0;
  const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const stalling = (async () => {
    while (!isOver) {
      const server = servers[Math.floor(random() * servers.length)];
      server?.freeze();
      await wait(50 + random() * 250);
      server?.thaw();
      stalls++;
      await wait(20 + random() * 30);
    }
  })();
  try {
    await work(() => stalls);
  } finally {
    isOver = true;
    await stalling;
  }
}

t.test('a node of a Cluster stalls for up to 300 ms: every window is exact', async (t) => {
  const cluster = await startCluster(t);
  await insideLongWindow();
  const all = await gateways(t, cluster.url, 2, PATIENT_MS);
  const admitted: number[] = [];
  await withStalls(cluster.nodes, seededRandom(3), async (stalls) => {
    for (let window = 0; stalls() < 15 && window < 2000; window++)
      admitted.push(await fill(all, `window-${window}`));
  });
  isExact(t, all, admitted);
});

t.test('a primary behind sentinels stalls for up to 300 ms: every window is exact', async (t) => {
  const redis = await startWatchedRedis(t);
  await insideLongWindow();
  const all = await gateways(t, redis.url, 2, PATIENT_MS);
  const admitted: number[] = [];
  await withStalls([redis.first], seededRandom(4), async (stalls) => {
    for (let window = 0; stalls() < 15 && window < 2000; window++)
      admitted.push(await fill(all, `window-${window}`));
  });
  isExact(t, all, admitted);
});

t.test('a request in flight when the store went away is charged at most twice', async (t) => {
  const redis = await startRedis(t);
  await insideLongWindow();
  const limiter = await startLimiter(t, redis.url, { budgetMs: BUDGET_MS });
  const [local, strict, free] = (['local', 'deny', 'allow'] as const).map((onStoreFailure) =>
    part(policy(onStoreFailure, 10, LONG_WINDOW_SECONDS, { onStoreFailure }), 'late'),
  ) as [Bucket, Bucket, Bucket];
  redis.freeze();
  t.teardown(() => redis.thaw());
  const asked = [local, strict, free].map((one) => spend(limiter, chargeOf(one)));
  t.match(await Promise.all(asked), [{ admitted: true }, { kind: 'unavailable' }, { admitted: true }]);
  t.equal(await burst(limiter, chargeOf(local), 3), 3, 'three more without the store');
  redis.thaw();
  await until(() => limiter.stats().available);
  t.equal(await counted(redis, local.key), 5, 'by the store and here, and the others once');
  t.equal(await counted(redis, strict.key), 1, 'by the store, although it was refused');
  t.equal(await counted(redis, free.key), 1);
});

t.test('owed usage is charged once, even if the confirmation is late', async (t) => {
  const redis = await startRedis(t);
  await insideLongWindow();
  // The answers of scripts that charge are texts; a heartbeat's is a list.
  const proxy = await startSlowProxy(t, redis.port, (piece) => (piece[0] === 0x24 ? 6 * BUDGET_MS : 0));
  const limiter = await startLimiter(t, `redis://127.0.0.1:${proxy.port}`, { budgetMs: BUDGET_MS });
  const owed = part(long('p', 10), 'debtor');
  redis.freeze();
  t.teardown(() => redis.thaw());
  await untilAway(limiter);
  t.equal(await burst(limiter, chargeOf(owed), 4), 4);
  redis.thaw();
  await until(() => limiter.stats().available);
  t.equal(await counted(redis, owed.key), 4);
});

/** Tells whether the kernel holds bytes from this port that this process has not read. */
function isAnswerWaiting(port: number): boolean {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync('/proc/net/tcp', 'latin1').split('\n');
  return rows.some((row) => {
    const [, , to = '', , queues = ''] = row.trim().split(/ +/);
    return to.endsWith(remote) && !queues.endsWith(':00000000');
  });
}

t.test('a stall of this process, longer than a connection may be silent, is none of the store', async (t) => {
  const redis = await startRedis(t);
  const limiter = await startLimiter(t, redis.url, { budgetMs: BUDGET_MS });
  const charge = chargeOf(part(long('p', LIMIT), 'stalled'));
  const stall = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  const asked = spend(limiter, charge);
  setImmediate(() => {
    stall(4000);
    // Redis may be slow too. What counts is that its answer is read after the timers of this process.
    while (!isAnswerWaiting(redis.port)) stall(10);
  });
  t.match(await asked, { admitted: true, spent: { isLocal: false } });
  t.match(limiter.stats(), { outages: 0, failures: { timeout: 0, disconnected: 0 } });
});

/** Starts a limiter that has connected. The test moves its time, and lets its store answer. */
async function startModel() {
  const time = new VirtualTime(Date.UTC(2026, 0, 1));
  const charge = chargeOf(part(long('p', LIMIT), 'stalled'));
  const opened = Promise.withResolvers<ModelConnection>();
  const limiter = new GuardedLimiter({
    store: accessTo('redis://model'),
    openStore: (_, options) => {
      const connection = new ModelConnection(new ModelStore(time.clock, [charge]), time.clock, options);
      opened.resolve(connection);
      return connection;
    },
    clock: time.clock,
    log: { warn() {}, info() {} },
    budgetMs: BUDGET_MS,
    replica: 'one',
    salt: 'salt',
    onSalt() {},
  });
  await time.run(0, () => void limiter.start());
  const connection = await opened.promise;
  const answer = (): Promise<void> => {
    connection.execute();
    return time.run(0, () => void connection.hear());
  };
  await answer();
  const answers: Answer[] = [];
  const ask = {
    check: () => time.run(0, () => void spend(limiter, charge).then((one) => answers.push(one))),
    async heartbeat() {
      while (connection.pending === 0) await time.fireNext(0);
    },
  };
  return { time, limiter, answer, ask, answers };
}

for (const what of ['check', 'heartbeat'] as const) {
  t.test(`a stall of this process and of the store during a ${what} is no outage`, async (t) => {
    const { time, limiter, answer, ask, answers } = await startModel();
    await ask[what]();
    for (let stall = 0; stall < 5; stall++) {
      time.now += 4000;
      // The timers that are due fire before the answer is read: that of the wait, and that of the heartbeats.
      for (let timer = 0; timer < 2; timer++) await time.fireNext(0);
    }
    await answer();
    if (what === 'check') t.match(answers, [{ admitted: true, spent: { isLocal: false } }]);
    t.match(limiter.stats(), { outages: 0, degraded: 0, failures: { timeout: 0 } });
  });

  t.test(`a ${what} without an answer is an outage after eleven times the timeout`, async (t) => {
    const { time, limiter, ask } = await startModel();
    await ask[what]();
    const startedAt = time.now;
    while (limiter.stats().available) await time.fireNext(0);
    t.equal(time.now - startedAt, 11 * BUDGET_MS);
  });
}
