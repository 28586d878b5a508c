/**
 * Loaded into the API's process with `--import`. Once a second, it reports the busiest event-loop tick and the memory
 * to the parent process. It measures the CPU time of the thread, because other programs on the machine can also cause a
 * pause.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { PerformanceObserver } from 'node:perf_hooks';

export interface Vitals {
  /** The longest CPU time in one event-loop tick of this second. */
  readonly busyMs: number;
  /** The part of `busyMs` that the garbage collector took. */
  readonly gcMs: number;
  /** The last requests before the end of that tick. The bench sends four at once, so they include the slow one. */
  readonly during: readonly string[];
  readonly heapBytes: number;
}

const TICK_MS = 10;
const REPORT_MS = 1000;
const DURING_MAX = 8;

let latest: readonly string[] = [];
subscribe('http.server.request.start', (message) => {
  const { method, url, headers } = (message as { readonly request: IncomingMessage }).request;
  const text = `${method} ${url?.slice(0, 120)} (${headers['content-length'] ?? 0} bytes)`;
  latest = [...latest, text].slice(-DURING_MAX);
});

let pauses: PerformanceEntry[] = [];
const collector = new PerformanceObserver((list) => void pauses.push(...list.getEntries()));
collector.observe({ entryTypes: ['gc'] });

/** The busiest tick of this second. */
const IDLE = { busyMs: 0, from: 0, to: 0, during: latest };
let worst = IDLE;
let tickedAt = performance.now();
let spentUs = cpuUs();

setInterval(() => {
  const [from, to] = [tickedAt, performance.now()];
  const nowUs = cpuUs();
  const busyMs = (nowUs - spentUs) / 1000;
  if (busyMs > worst.busyMs) worst = { busyMs, from, to, during: latest };
  tickedAt = to;
  spentUs = nowUs;
}, TICK_MS).unref();

setInterval(() => {
  pauses.push(...collector.takeRecords());
  const { busyMs, during, from, to } = worst;
  const gcMs = pauses
    .filter(({ startTime }) => startTime >= from && startTime <= to)
    .reduce((sum, { duration }) => sum + duration, 0);
  const heapBytes = process.memoryUsage().heapUsed;
  process.send?.({ busyMs, gcMs, during, heapBytes } satisfies Vitals);
  pauses = [];
  worst = IDLE;
}, REPORT_MS).unref();
process.channel?.unref();

function cpuUs(): number {
  const { system, user } = process.threadCpuUsage();
  return system + user;
}
