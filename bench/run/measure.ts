/** Compares servers: sends load to each of them in turn, and measures the cost of a request. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Load } from './load.ts';
import { paced } from './paced.ts';
import type { Processes } from './processes.ts';
import { usageOf } from './usage.ts';
import { wrk } from './wrk.ts';

/** A server under load. */
export interface Subject {
  /** Scheme, host and port. */
  readonly origin: string;
  readonly load: Load;
  readonly pids: readonly number[];
  /** The server's Redis or database. */
  readonly store: {
    readonly pids: readonly number[];
    /** Returns the number of commands that Redis has executed. Databases do not have it. */
    readonly commands?: () => Promise<number>;
  } | null;
}

/** Results of one visit. They are for one request, unless the name says otherwise. */
export interface Slice {
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly storeCpuUs: number;
  /** Server and store together. */
  readonly totalCpuUs: number;
  readonly storeCommands: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The p50 minus the p50 of the upstream itself in the same round. NaN if the upstream was not measured. */
  readonly addedMs: number;
  readonly rssMb: number;
  readonly refusedShare: number;
  /** Number of requests without a reply, in the whole visit. */
  readonly errors: number;
}

interface Plan {
  /** Duration of the warm-up of each server. */
  readonly warmSeconds: number;
  readonly rounds: number;
  /** Duration of one visit. */
  readonly seconds: number;
  readonly processes: Processes;
}

const BREATH_MS = 100;

/**
 * Visits all servers in each round, in an order that rotates. So a disturbance of the machine affects all of them, and
 * ratios within a round stay fair.
 *
 * @returns one slice for each server and round
 */
export async function compare<S extends Subject>(
  subjects: readonly S[],
  { warmSeconds, rounds, seconds, processes }: Plan,
  afterRound?: () => Promise<void>,
): Promise<ReadonlyMap<S, readonly Slice[]>> {
  for (const subject of subjects)
    await visit({ ...subject, load: { ...subject.load, rate: null } }, warmSeconds, processes);
  const results = new Map(subjects.map((subject): [S, Slice[]] => [subject, []]));
  for (let round = 0; round < rounds; round++) {
    const first = round % subjects.length;
    for (const subject of [...subjects.slice(first), ...subjects.slice(0, first)]) {
      await sleep(BREATH_MS);
      results.get(subject)?.push(await visit(subject, seconds, processes));
    }
    await afterRound?.();
  }
  return results;
}

async function visit(
  { load, origin, pids, store }: Subject,
  visitSeconds: number,
  processes: Processes,
): Promise<Slice> {
  const read = async () => ({
    own: usageOf(pids),
    store: usageOf(store?.pids ?? []),
    commands: (await store?.commands?.()) ?? 0,
  });
  const before = await read();
  const { requests, seconds, refused, errors, p50Ms, p99Ms } =
    load.rate === null
      ? await wrk(load, origin, visitSeconds, processes)
      : await paced(load, origin, visitSeconds, load.rate);
  const after = await read();
  const each = (value: number): number => (requests === 0 ? Number.NaN : value / requests);
  const cpuUs = each(after.own.cpuUs - before.own.cpuUs);
  const storeCpuUs = each(after.store.cpuUs - before.store.cpuUs);
  return {
    perSecond: requests / seconds,
    ...{ cpuUs, storeCpuUs, totalCpuUs: cpuUs + storeCpuUs, p50Ms, p99Ms, errors },
    storeCommands: each(Math.max(0, after.commands - before.commands)),
    addedMs: Number.NaN,
    rssMb: after.own.rssMb,
    refusedShare: each(refused),
  };
}
