/** Checks each setting with the algorithms, and prints what was covered. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Test } from 'tap';
import type { Searched } from './search-thread.ts';
import type { Bounds, Setting } from './world.ts';

export const NOTHING: Bounds = {
  requests: 0,
  lateReplies: 0,
  errors: 0,
  storeLost: 0,
  connectionsLost: 0,
  storeEmptied: 0,
  gatewaysKilled: 0,
  windowChanges: 0,
  finishes: 0,
};

const ALGORITHMS = [
  { algorithm: 'fixed-window', values: false },
  { algorithm: 'sliding-window', values: false },
  { algorithm: 'token-bucket', values: false },
  { algorithm: 'concurrency', values: false },
  { algorithm: 'calendar-window', values: false },
  { algorithm: 'fixed-window', values: true },
] as const;

/** Within one window these have exactly the states of a fixed window. */
const ALIKE: ReadonlySet<string> = new Set(['sliding-window', 'calendar-window']);

/** @param alikeToo whether algorithms that are alike within a window are checked without a change of the window too */
export function checkAll(
  t: Test,
  settings: readonly Omit<Setting, 'algorithm' | 'values'>[],
  alikeToo = false,
): Promise<unknown> {
  const all = ALGORITHMS.flatMap(({ algorithm, values }) => {
    // A policy file cannot limit newcomers so.
    const isForNewcomers = algorithm !== 'concurrency' && !values;
    const wanted = settings.filter(
      ({ bounds, newcomers }) =>
        (alikeToo || bounds.windowChanges > 0 || !ALIKE.has(algorithm)) &&
        (newcomers !== true || isForNewcomers),
    );
    return wanted.map(({ bounds, ...setting }): Setting => {
      const without = algorithm === 'concurrency' ? { windowChanges: 0 } : { finishes: 0 };
      // Each request can have one of several values, so there are many more orders.
      if (values) bounds = { ...bounds, requests: Math.min(3, bounds.requests) };
      return { ...setting, algorithm, values, bounds: { ...bounds, ...without } };
    });
  });
  return t.test('every order of events', async (t) => {
    let searched = 0;
    let states = 0;
    let transitions = 0;
    const cpu = process.cpuUsage();
    // tap watches every promise of its thread, which makes the search three times as slow there.
    const thread = new Worker(new URL('./search-thread.ts', import.meta.url), { workerData: all });
    thread.on('message', ({ setting, found }: Searched) => {
      searched++;
      states += found.states;
      transitions += found.transitions;
      const { algorithm, values, gateways, limit, newcomers = false, bounds } = setting;
      const happens = Object.entries(bounds).flatMap(([what, times]) =>
        times > 0 ? [`${what} ${times}`] : [],
      );
      const what = `${algorithm}${values ? ' of values' : ''}${newcomers ? ' of newcomers' : ''}, ${gateways} gateways, limit ${limit}, ${happens.join(', ')}`;
      t.strictSame(found.counterexample, null, `${what}: ${found.states} states, ${found.depth} steps`);
    });
    await once(thread, 'exit');
    t.equal(searched, all.length, 'all settings were searched');
    const { user, system } = process.cpuUsage(cpu);
    t.comment(`${states} states, ${transitions} transitions, ${((user + system) / 1e6).toFixed(1)} s of CPU`);
  });
}
