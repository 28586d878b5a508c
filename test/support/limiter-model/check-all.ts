/** Checks each setting with every algorithm, and prints what was covered. */
import t from 'tap';
import { search } from './search.ts';
import type { Bounds, Setting } from './world.ts';

export const NOTHING: Bounds = {
  requests: 0,
  lateReplies: 0,
  silences: 0,
  storeLost: 0,
  connectionsLost: 0,
  storeEmptied: 0,
  gatewaysKilled: 0,
  windowChanges: 0,
};

const ALGORITHMS = ['fixed-window', 'sliding-window', 'token-bucket', 'concurrency'] as const;

export async function checkAll(settings: readonly Omit<Setting, 'algorithm'>[]): Promise<void> {
  let states = 0;
  let transitions = 0;
  const cpu = process.cpuUsage();
  for (const algorithm of ALGORITHMS)
    for (const setting of settings) {
      const found = await search({ ...setting, algorithm });
      states += found.states;
      transitions += found.transitions;
      const { gateways, limit, bounds } = setting;
      const faults = Object.entries(bounds).filter(([, times]) => times > 0);
      const what = `${algorithm}, ${gateways} gateways, limit ${limit}, ${faults.map(([name, times]) => `${name} ${times}`).join(', ')}`;
      t.equal(
        found.counterexample,
        null,
        `${what}: ${found.states} states, up to ${found.depth} events deep`,
      );
    }
  const { user, system } = process.cpuUsage(cpu);
  t.comment(`${states} states, ${transitions} transitions, ${((user + system) / 1e6).toFixed(1)} s of CPU`);
}
