/**
 * Loaded into the API's process with `--import`: reports the event loop and the memory to its parent once a second. Only the
 * thread's own CPU time counts: the rest of a pause is the fault of other users of the machine.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PerformanceObserver } from 'node:perf_hooks';

export interface Vitals {
  /** The longest CPU time in one event-loop tick of this second. */
  readonly busyMs: number;
  /** The part of it that the garbage collector took. */
  readonly gcMs: number;
  /** Requests in that time. */
  readonly during: readonly string[];
  readonly heapBytes: number;
}

const TICK_MS = 10;
const REPORT_MS = 1000;
const DURING_MAX = 8;

/** Requests without a reply, and those that began since the last tick. */
const active = new Map<IncomingMessage, string>();
let begun: string[] = [];
subscribe('http.server.request.start', (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
  const text = `${request.method} ${request.url?.slice(0, 120)} (${request.headers['content-length'] ?? 0} bytes)`;
  active.set(request, text);
  begun.push(text);
  response.once('close', () => active.delete(request));
});

let pauses: PerformanceEntry[] = [];
const collector = new PerformanceObserver((list) => void pauses.push(...list.getEntries()));
collector.observe({ entryTypes: ['gc'] });

/** The busiest tick of this second. */
const IDLE = { busyMs: 0, from: 0, to: 0, during: [] as readonly string[] };
let worst = IDLE;
let tickedAt = performance.now();
let spentUs = cpuUs();
/** A request that stalls the loop may be answered when the timer runs, so those of the tick before count too. */
let before: readonly string[] = [];

setInterval(() => {
  const [from, to] = [tickedAt, performance.now()];
  const nowUs = cpuUs();
  const busyMs = (nowUs - spentUs) / 1000;
  const current = [...active.values()];
  const during = new Set([...before, ...begun, ...current]);
  if (busyMs > worst.busyMs) worst = { busyMs, from, to, during: [...during].slice(0, DURING_MAX) };
  tickedAt = to;
  spentUs = nowUs;
  before = current;
  begun = [];
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
