/** Sends requests at an even rate, even if earlier ones have no reply yet. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Lane } from '#test/support/lane.ts';
import { quantile } from './statistics.ts';

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Number of replies with a status other than 2xx and 3xx. */
  readonly refused: number;
  /** Number of broken connections and of requests without a reply. */
  readonly errors: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const CONNECTIONS_MAX = 512;
const GRACE_MS = 500;

/** Calls `act` at an even rate with the numbers from 0 to below `count`. */
export async function pace(count: number, perSecond: number, act: (i: number) => void): Promise<void> {
  const began = performance.now();
  for (let i = 0; i < count; i++) {
    const waitMs = began + (i * 1000) / perSecond - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    act(i);
  }
}

/**
 * Measures the latency of a server that is not saturated. A request that finds no idle connection opens another one, so
 * a slow server cannot slow down the load and hide its own delays.
 */
export async function paced(
  { method, path }: { readonly method: string; readonly path: string },
  origin: string,
  seconds: number,
  perSecond: number,
): Promise<LoadResult> {
  const { host, port } = new URL(origin);
  const request = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const latenciesMs: number[] = [];
  let refused = 0;
  const open = new Set<Lane>();
  const idle: Lane[] = [];
  const send = async (): Promise<void> => {
    const lane = idle.pop() ?? new Lane(Number(port));
    if (!open.has(lane) && open.size >= CONNECTIONS_MAX) return;
    open.add(lane);
    const began = performance.now();
    const { status } = await lane.ask(request);
    latenciesMs.push(performance.now() - began);
    if (status !== 200) refused++;
    idle.push(lane);
  };
  const total = Math.round(perSecond * seconds);
  // A request without a reply is an error, which the total shows.
  await pace(total, perSecond, () => void send().catch(() => undefined));
  await sleep(GRACE_MS);
  for (const lane of open) lane.close();
  return {
    ...{ requests: latenciesMs.length, seconds, refused, errors: total - latenciesMs.length },
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
  };
}
