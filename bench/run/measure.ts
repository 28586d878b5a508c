/** Measures one slice of load on one server, and visits several servers in turn. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadResult } from './load.ts';
import { usageOf } from './usage.ts';

/** A server under load. */
export interface Subject {
  readonly name: string;
  /** Without a path. */
  readonly origin: string;
  readonly pids: readonly number[];
  /** The server's Redis or database. */
  readonly store: {
    readonly pids: readonly number[];
    /** The number of commands that it has executed. Only Redis has it. */
    readonly commands?: () => Promise<number>;
  } | null;
}

/** Figures for one request, if the name says nothing else. */
export interface Slice {
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly storeCpuUs: number;
  /** Server and store together. */
  readonly totalCpuUs: number;
  readonly storeCommands: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly rssMb: number;
  readonly refusedShare: number;
  /** All requests without a reply. */
  readonly errors: number;
}

/** A Node process costs twice as much in its first second as after five. */
export const WARM_SECONDS = 6;
const BREATH_MS = 100;

export async function measure(subject: Subject, load: () => Promise<LoadResult>): Promise<Slice> {
  const { pids, store } = subject;
  const read = async () => ({
    own: usageOf(pids),
    store: usageOf(store?.pids ?? []),
    commands: (await store?.commands?.()) ?? 0,
  });
  const before = await read();
  const { requests, seconds, refused, errors, p50Ms, p99Ms } = await load();
  const after = await read();
  const each = (value: number): number => (requests === 0 ? Number.NaN : value / requests);
  const cpuUs = each(after.own.cpuUs - before.own.cpuUs);
  const storeCpuUs = each(after.store.cpuUs - before.store.cpuUs);
  return {
    perSecond: requests / seconds,
    ...{ cpuUs, storeCpuUs, totalCpuUs: cpuUs + storeCpuUs, p50Ms, p99Ms, errors },
    storeCommands: each(Math.max(0, after.commands - before.commands)),
    rssMb: after.own.rssMb,
    refusedShare: each(refused),
  };
}

/**
 * Visits all subjects in each round, in an order that rotates. So a disturbance of the machine affects all of them, and
 * ratios within a round stay fair.
 *
 * @returns for each subject its results, one for each round
 */
export async function inTurn<S, R>(
  subjects: readonly S[],
  rounds: number,
  visit: (subject: S, round: number) => Promise<R>,
): Promise<readonly (readonly R[])[]> {
  const results = subjects.map((): R[] => []);
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < subjects.length; i++) {
      const at = (i + round) % subjects.length;
      await sleep(BREATH_MS);
      results[at]?.push(await visit(subjects[at] as S, round));
    }
  }
  return results;
}
