/**
 * Collects the young generation, about a millisecond, before V8 would collect everything, about ten. V8 does that after
 * every 32 MB of buffers, and of a body that has been passed on nothing but buffers is left: without this, fast bodies
 * cost 12 collections of everything a second, and 40 MB more of memory. Most are freed at once by now (free-buffer.ts).
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { readonly type: 'minor' }) => void;

/** @returns what collects; nothing is changed unless it is called */
export function youngCollector(): () => void {
  // Seen only by contexts that are made from now on: nobody else's code finds a `gc`.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return () => collect({ type: 'minor' });
}
