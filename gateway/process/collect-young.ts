/**
 * Collects V8's young generation early. Forwarded bodies leave only buffers as garbage. After every 32 MB of new
 * buffers, V8 runs a full collection, which takes about 10 ms. Collecting the young generation takes about 1 ms.
 * Without it, fast bodies caused 12 full collections a second and took 40 MB more memory. Most buffers are now freed at
 * once (free-buffer.ts).
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { readonly type: 'minor' }) => void;

/** @returns function that runs a collection; creating it has no other effect */
export function youngCollector(): () => void {
  // Only contexts that are created between these flags see `gc`, so no other code can call it.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return () => collect({ type: 'minor' });
}
