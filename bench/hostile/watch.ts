/**
 * Loaded into the API's process with `--import`: tells its parent once a second how the event loop fared, with the memory.
 * A stall is the time for which the loop did not turn; what of it this thread spent computing is the API's own, the rest
 * belongs to whoever else uses the machine.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';

export interface Vitals {
  /** The longest stall of this second, by the histogram of perf_hooks. */
  readonly stallMs: number;
  /** The longest time of computing without a turn of the loop. */
  readonly busyMs: number;
  /** What of it the garbage collector took. */
  readonly gcMs: number;
  /** Requests that were on their way in that time. */
  readonly during: readonly string[];
  readonly heapBytes: number;
  readonly rssBytes: number;
}

const TICK_MS = 10;
const REPORT_MS = 1000;

const active = new Map<IncomingMessage, string>();
/** Begun since the last tick: some are answered before the next. */
let begun: string[] = [];
subscribe('http.server.request.start', (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
  const text = `${request.method} ${request.url?.slice(0, 120)} (${request.headers['content-length'] ?? 0} bytes)`;
  active.set(request, text);
  begun.push(text);
  response.once('close', () => active.delete(request));
});

const delays = monitorEventLoopDelay({ resolution: TICK_MS });
delays.enable();
let busyMs = 0;
/** When that was, by performance.now(). */
let busyFrom = 0;
let busyTo = 0;
let tickedAt = performance.now();
/** Pauses of the garbage collector in this second. */
let pauses: PerformanceEntry[] = [];
const collector = new PerformanceObserver((list) => void pauses.push(...list.getEntries()));
collector.observe({ entryTypes: ['gc'] });
let during: readonly string[] = [];
/** In microseconds of this thread. */
let spent = cpuMicros();
/** Requests of the turn before: those of a stall may be answered by the time that the timer runs. */
let before: readonly string[] = [];

setInterval(() => {
  const now = cpuMicros();
  const ms = (now - spent) / 1000;
  spent = now;
  const current = [...active.values()];
  const from = tickedAt;
  tickedAt = performance.now();
  if (ms > busyMs) {
    busyMs = ms;
    busyFrom = from;
    busyTo = tickedAt;
    during = [...new Set([...before, ...begun, ...current])].slice(0, 8);
  }
  before = current;
  begun = [];
}, TICK_MS).unref();

setInterval(() => {
  const { heapUsed, rss } = process.memoryUsage();
  pauses.push(...collector.takeRecords());
  const gcMs = pauses
    .filter(({ startTime }) => startTime >= busyFrom && startTime <= busyTo)
    .reduce((sum, { duration }) => sum + duration, 0);
  const vitals: Vitals = {
    ...{ stallMs: delays.max / 1e6, busyMs, gcMs, during, heapBytes: heapUsed, rssBytes: rss },
  };
  process.send?.(vitals);
  pauses = [];
  delays.reset();
  busyMs = 0;
  during = [];
}, REPORT_MS).unref();
process.channel?.unref();

function cpuMicros(): number {
  const { system, user } = process.threadCpuUsage();
  return system + user;
}
