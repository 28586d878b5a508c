/**
 * Breadth-first search over all states of a world. Limiters cannot be copied, so states are reached by replays. The
 * replay that reaches a new state goes on with the first event there, which saves half of the replays.
 */
import { type Setting, World } from './world.ts';

interface Found {
  readonly before: Found | null;
  readonly event: string;
  /** The events that can follow, without the one that the replay went on with when it found the state. */
  readonly enabled: readonly string[];
}

export interface Search {
  readonly states: number;
  readonly transitions: number;
  /** Number of steps of the search. */
  readonly depth: number;
  /** A short path to a wrong state, and what is wrong there. */
  readonly counterexample: { readonly events: readonly string[]; readonly violation: string } | null;
}

export async function replay(setting: Setting, events: readonly string[]): Promise<World> {
  const world = new World(setting);
  await world.start();
  for (const event of events) await world.happen(event);
  return world;
}

export async function search(setting: Setting): Promise<Search> {
  const first = await replay(setting, []);
  const seen = new Set([first.digest()]);
  let level: Found[] = [{ before: null, event: '', enabled: first.enabled() }];
  let transitions = 0;
  let depth = 0;
  for (;;) {
    const next: Found[] = [];
    for (const state of level) {
      const way = wayTo(state);
      // Node forgets handled rejections only between two turns of its loop.
      await new Promise((resolve) => setImmediate(resolve));
      for (const first of state.enabled) {
        const world = await replay(setting, way);
        let [before, event]: [Found, string | undefined] = [state, first];
        while (event !== undefined) {
          await world.happen(event);
          transitions++;
          const violation = world.violation();
          if (violation !== null) {
            const counterexample = { events: [...wayTo(before), event], violation };
            return { states: seen.size, transitions, depth: depth + 1, counterexample };
          }
          const digest = world.digest();
          if (seen.has(digest)) break;
          seen.add(digest);
          const [onward, ...enabled] = world.enabled();
          before = { before, event, enabled };
          next.push(before);
          event = onward;
        }
      }
    }
    if (next.length === 0) return { states: seen.size, transitions, depth, counterexample: null };
    level = next;
    depth++;
  }
}

function wayTo(state: Found): string[] {
  const events: string[] = [];
  for (let at = state; at.before !== null; at = at.before) events.push(at.event);
  return events.reverse();
}
