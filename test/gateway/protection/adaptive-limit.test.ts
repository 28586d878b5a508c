/** Tests the adaptive limit alone, in front of an application that is a formula. */
import assert from 'node:assert/strict';
import t from 'tap';
import { AdaptiveLimit, IN_PROGRESS_MIN } from '#gateway/protection/adaptive-limit.ts';
import { fc } from '#test/support/fast-check.ts';

const MAX = 256;
const WINDOW_MS = 500;

interface Load {
  /** Time to the reply, for each client. */
  readonly ms: readonly number[];
  readonly inProgress: number;
  readonly isAnswered?: boolean;
}

/** A limit with its clock. */
class Run {
  readonly limit = new AdaptiveLimit(MAX);
  now = 1_000_000;

  /** Simulates windows in which each client has one reply. */
  windows(count: number, { ms, inProgress, isAnswered = true }: Load): number {
    for (let i = 0; i < count; i++) {
      const tell = (): void =>
        ms.forEach(
          (one, client) =>
            void this.limit.measure(`192.0.2.${client}`, one, isAnswered, inProgress, this.now),
        );
      tell();
      this.now += WINDOW_MS;
      // The first reply after its end closes a window, so all clients are in it.
      tell();
    }
    return this.limit.limit;
  }
}

const calm = { ms: [40, 50, 60], inProgress: 5 };
const busy = { ms: [40, 50, 60], inProgress: 100 };

t.test(
  'the limit is at its maximum until replies take more than twice as long as without load',
  async (t) => {
    const run = new Run();
    t.equal(run.windows(20, calm), MAX);
    t.equal(run.windows(20, busy), MAX);
    t.equal(run.windows(20, { ms: [80, 100, 109], inProgress: 200 }), MAX, '2 × 50 ms + 10 ms are tolerated');
    t.equal(run.windows(1, { ms: [400, 500, 600], inProgress: 200 }), MAX, 'one slow window may be a pause');
    t.equal(
      run.windows(1, { ms: [400, 500, 600], inProgress: 200 }),
      100,
      'falls to half of the requests in progress',
    );
  },
);

t.test('falls to its minimum, no further, and rises again', async (t) => {
  const run = new Run();
  run.windows(20, calm);
  t.equal(run.windows(30, { ms: [2000, 2000, 2000], inProgress: 64 }), IN_PROGRESS_MIN);
  run.windows(6, busy);
  t.ok(run.limit.limit > IN_PROGRESS_MIN);
  t.equal(run.windows(40, busy), MAX, 'is at its maximum again within 20 s');
});

t.test('slow replies do not lower the limit while few requests are in progress', async (t) => {
  const run = new Run();
  run.windows(20, calm);
  for (let i = 0; i < 50; i++)
    t.equal(run.windows(1, { ms: [3000, 3000, 3000], inProgress: IN_PROGRESS_MIN }), MAX);
});

t.test('one client has a bounded influence', async (t) => {
  await t.test('its slow requests do not lower the limit', async (t) => {
    for (const visitors of [[50], [50, 50], [50, 50, 50, 50]]) {
      const run = new Run();
      run.windows(20, { ms: visitors, inProgress: 5 });
      t.equal(
        run.windows(100, { ms: [5000, ...visitors], inProgress: 64 }),
        MAX,
        `beside ${visitors.length}`,
      );
    }
  });
  await t.test('while it is alone, it neither lowers the limit nor changes the baseline', async (t) => {
    const run = new Run();
    run.windows(20, calm);
    const { unloadedMs } = run.limit;
    t.equal(run.windows(50, { ms: [5000], inProgress: 64 }), MAX);
    t.equal(run.windows(50, { ms: [1], inProgress: 5 }), MAX);
    t.equal(run.limit.unloadedMs, unloadedMs);
  });
  await t.test('its fast requests do not make the others look slow', async (t) => {
    for (const visitors of [[50], [50, 50], [50, 50, 50, 50]]) {
      const run = new Run();
      run.windows(20, { ms: visitors, inProgress: 5 });
      run.windows(100, { ms: [0, ...visitors], inProgress: 5 });
      t.equal(run.windows(20, { ms: [0, 0, 60, 60, 60], inProgress: 100 }), MAX, `beside ${visitors.length}`);
    }
  });
  await t.test('it counts once, however many requests it sends', async (t) => {
    const run = new Run();
    run.windows(20, calm);
    for (let i = 0; i < 20; i++) {
      for (let n = 0; n < 1000; n++) run.limit.measure('198.51.100.1', 5000, true, 64, run.now);
      run.windows(1, { ms: [50, 50], inProgress: 64 });
    }
    t.equal(run.limit.limit, MAX);
  });
});

t.test('learns the new baseline of an application that has become slower', async (t) => {
  const run = new Run();
  run.windows(40, calm);
  const slower = { ms: [400, 500, 600], inProgress: 100 };
  run.windows(10, slower);
  t.ok(run.limit.limit < MAX, 'slow replies first lower the limit');
  // From then on the limit admits only this many.
  let windows = 0;
  while (run.limit.limit < MAX && windows < 200) {
    run.windows(1, { ...slower, inProgress: Math.min(100, run.limit.limit) });
    windows++;
  }
  t.equal(run.limit.limit, MAX);
  t.ok(windows < 100, `after ${windows} windows`);
});

t.test('after a while a slow application without load becomes the baseline', async (t) => {
  const run = new Run();
  const load = (): object => ({ ms: [3000, 3000, 3000], inProgress: Math.min(50, run.limit.limit) });
  for (let i = 0; i < 60; i++) run.windows(1, load() as Load);
  t.equal(run.limit.limit, MAX);
});

t.test('after an idle time the limit is at its maximum, and the baseline stays', async (t) => {
  const run = new Run();
  run.windows(20, calm);
  const { unloadedMs } = run.limit;
  run.windows(20, { ms: [2000, 2000, 2000], inProgress: 64 });
  t.equal(run.limit.limit, IN_PROGRESS_MIN);
  run.now += 60_000;
  run.windows(1, calm);
  t.equal(run.limit.limit, MAX);
  t.ok(Math.abs((run.limit.unloadedMs ?? 0) - (unloadedMs ?? 0)) < 5);
});

t.test('requests without a good reply count only if they were slow', async (t) => {
  const run = new Run();
  run.windows(20, calm);
  const { unloadedMs } = run.limit;
  run.windows(50, { ms: [0, 0, 0], inProgress: 5, isAnswered: false });
  t.equal(run.limit.unloadedMs, unloadedMs, 'fast errors do not change the baseline');
  t.equal(run.windows(1, { ms: [0, 0, 0], inProgress: 200, isAnswered: false }), MAX);
  t.ok(run.windows(3, { ms: [5000, 5000, 5000], inProgress: 200, isAnswered: false }) < MAX, 'timeouts');
});

interface Simulated {
  readonly workers: number;
  /** Time of one request. */
  readonly ms: number | (() => number);
  readonly seconds: number;
  /** Requests that clients have in progress or would like to have. */
  readonly demand: number;
}

/**
 * Simulates an application with a number of workers and a time for each request. Other requests wait in order.
 *
 * @returns the requests that it has answered, and the part of its workers that was busy on average
 */
function simulate(run: Run, { workers, ms, seconds, demand }: Simulated): { done: number; busyPart: number } {
  const STEP_MS = 5;
  let client = 0;
  let done = 0;
  let busySteps = 0;
  const queue: { client: string; at: number }[] = [];
  const working: { client: string; at: number; endsAt: number }[] = [];
  for (const end = run.now + seconds * 1000; run.now < end; run.now += STEP_MS) {
    for (let i = working.length - 1; i >= 0; i--) {
      const one = working[i];
      if (one === undefined || one.endsAt > run.now) continue;
      done++;
      run.limit.measure(one.client, run.now - one.at, true, queue.length + working.length, run.now);
      working.splice(i, 1);
    }
    while (queue.length + working.length < Math.min(demand, run.limit.limit))
      queue.push({ client: `c${client++ % 50}`, at: run.now });
    while (working.length < workers && queue.length > 0) {
      const next = queue.shift();
      const takes = typeof ms === 'number' ? ms : ms();
      if (next !== undefined) working.push({ ...next, endsAt: run.now + takes });
    }
    busySteps += working.length / workers;
  }
  return { done, busyPart: busySteps / ((seconds * 1000) / STEP_MS) };
}

t.test('slow replies that do not depend on the load do not lower the limit', async (t) => {
  const run = new Run();
  simulate(run, { workers: MAX, ms: 5, seconds: 10, demand: 1 });
  // Requests for slower routes arrive. The application could process many more of them.
  const { done } = simulate(run, { workers: MAX, ms: 100, seconds: 20, demand: 100 });
  t.ok(done > 0.8 * 20 * 1000, `the application is hardly limited: ${done} of 20,000`);
  t.equal(run.limit.limit, MAX);
});

t.test('random applications stay busy under overload', async () => {
  const seed = fc.integer({ min: 1, max: 2 ** 31 - 2 });
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 100 }),
      fc.integer({ min: 5, max: 300 }),
      seed,
      (workers, mean, seed) => {
        let state = seed;
        const exponential = (): number => {
          state = (state * 48_271) % (2 ** 31 - 1);
          return -mean * Math.log(state / (2 ** 31 - 1));
        };
        for (const ms of [mean, exponential]) {
          const run = new Run();
          simulate(run, { workers, ms, seconds: 8, demand: Math.min(workers, 8) });
          const { busyPart } = simulate(run, { workers, ms, seconds: 30, demand: 400 });
          assert.ok(busyPart > 0.95, `${busyPart} of ${workers} workers`);
        }
      },
    ),
    { numRuns: 15 },
  );
});
