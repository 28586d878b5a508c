/** Searches one setting after the other in a thread of its own. */
import { parentPort, workerData } from 'node:worker_threads';
import { type Search, search } from './search.ts';
import type { Setting } from './world.ts';

export interface Searched {
  readonly setting: Setting;
  readonly found: Search;
}

// Nobody reads the stacks of the many errors that the limiter meets and handles.
Error.stackTraceLimit = 0;

for (const setting of workerData as readonly Setting[]) {
  const searched: Searched = { setting, found: await search(setting) };
  parentPort?.postMessage(searched);
}
