/** One slice: load on one target, and what it cost those who served it. */
import type { Driver, LoadResult } from './load/load.ts';
import { usageOf } from './proc.ts';
import type { Scenario } from './scenarios.ts';
import type { Store } from './targets/redis.ts';

export interface Slice {
  readonly requestsPerSecond: number;
  /** Of the serving processes, per request. */
  readonly cpuUs: number;
  readonly redisCpuUs: number;
  /** Both together: what a request costs the machine. */
  readonly totalCpuUs: number;
  readonly redisCommands: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly rssMb: number;
  readonly refusedShare: number;
  readonly errors: number;
}

/** What is under load. */
export interface Subject {
  readonly port: number;
  readonly pids: readonly number[];
  readonly store: Store | null;
}

/** What runs on Node costs twice as much in its first second as in its fifth, and settles then. */
export const WARM_SECONDS = 6;

const MB = 1_048_576;

/** 64 connections can share one script of at least three commands; a probe of a lost store is far rarer than this. */
const COMMANDS_PER_REQUEST_MIN = 0.01;

/**
 * A limiter that has lost its Redis, or cannot use it, lets requests through and looks fast. Such figures are of
 * another job, and are refused.
 *
 * @returns what is wrong, or null
 */
export function notTheJob(slice: Slice, scenario: Scenario, countsInRedis: boolean): string | null {
  if (!countsInRedis || scenario.storeDown || scenario.limits === 0 || scenario.expect === 'denied')
    return null;
  return slice.redisCommands >= COMMANDS_PER_REQUEST_MIN ? null : 'it did not count in its Redis';
}

export async function measure(
  subject: Subject,
  scenario: Scenario,
  driver: Driver,
  seconds: number,
): Promise<Slice> {
  const redisPids = subject.store === null ? [] : [subject.store.pid];
  const before = usageOf(subject.pids);
  const redisBefore = usageOf(redisPids);
  const commandsBefore = (await subject.store?.commands()) ?? 0;
  const load = await driver(subject.port, scenario, seconds);
  const after = usageOf(subject.pids);
  const redisAfter = usageOf(redisPids);
  const commands = ((await subject.store?.commands()) ?? 0) - commandsBefore;
  return sliceOf(load, {
    cpuUs: after.cpuUs - before.cpuUs,
    redisCpuUs: redisAfter.cpuUs - redisBefore.cpuUs,
    commands: Math.max(0, commands),
    rssBytes: after.rssBytes,
  });
}

function sliceOf(
  load: LoadResult,
  cost: { cpuUs: number; redisCpuUs: number; commands: number; rssBytes: number },
): Slice {
  const per = (value: number): number => (load.requests === 0 ? Number.NaN : value / load.requests);
  return {
    requestsPerSecond: load.requests / load.seconds,
    cpuUs: per(cost.cpuUs),
    redisCpuUs: per(cost.redisCpuUs),
    totalCpuUs: per(cost.cpuUs + cost.redisCpuUs),
    redisCommands: per(cost.commands),
    p50Ms: load.p50Ms,
    p99Ms: load.p99Ms,
    rssMb: cost.rssBytes / MB,
    refusedShare: per(load.refused),
    errors: load.errors,
  };
}
