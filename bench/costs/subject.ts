/** Starts a peer for a scenario, and measures slices of it. */
import type { Launch } from '#bench/peers/peer.ts';
import { measure, type Slice, type Subject } from '#bench/run/measure.ts';
import { paced } from '#bench/run/paced.ts';
import type { Processes, Started } from '#bench/run/processes.ts';
import { type RedisServer, startRedis } from '#bench/run/redis.ts';
import { wrk } from '#bench/run/wrk.ts';
import { freePort } from '#test/support/ports.ts';
import { launchOf, loadOf, type Scenario } from './scenarios.ts';

/** 64 connections can share one script of at least three commands. A process that lost its Redis sends far fewer. */
const COMMANDS_PER_REQUEST_MIN = 0.01;

export interface Candidate {
  readonly name: string;
  readonly label: string;
  readonly usesRedis: boolean;
  readonly countsInRedis: boolean;
  start(launch: Launch): Promise<Started>;
}

export interface Running {
  readonly candidate: Candidate;
  readonly subject: Subject;
  readonly server: Started;
  readonly redis: RedisServer | null;
  stop(): Promise<void>;
}

/** @throws Error when it does not do what is measured */
export async function startCandidate(
  candidate: Candidate,
  scenario: Scenario,
  { processes, upstreamPort }: { readonly processes: Processes; readonly upstreamPort: number },
): Promise<Running> {
  const redis = candidate.usesRedis ? await startRedis(processes) : null;
  const port = await freePort();
  const redisPort = redis?.port ?? 0;
  const server = await candidate.start({
    ...{ processes, port, upstreamPort, redisPort },
    ...launchOf(scenario),
  });
  const origin = `http://127.0.0.1:${port}`;
  const store = redis === null ? null : { pids: [redis.pid], commands: () => redis.commands() };
  return {
    ...{ candidate, server, redis },
    subject: { name: candidate.name, origin, pids: [server.pid], store },
    async stop() {
      await server.stop();
      await redis?.stop();
    },
  };
}

/** A peer that does not limit would win every comparison. @throws Error */
export async function assertLimits({ candidate, subject }: Running, scenario: Scenario): Promise<void> {
  const { method, path, keys, isDenied } = scenario;
  const ask = async (): Promise<number> => {
    const response = await fetch(`${subject.origin}${path}`, {
      method,
      headers: keys > 0 ? { 'x-api-key': 'fbk_bench_probe' } : {},
      ...(method === 'POST' ? { body: '{}' } : {}),
    });
    await response.text();
    return response.status;
  };
  const first = await ask();
  if (first !== 200) throw new Error(`${candidate.label} replied ${first} to the first request`);
  if (!isDenied) return;
  const statuses = await Promise.all(Array.from({ length: 400 }, ask));
  if (!statuses.includes(429)) throw new Error(`${candidate.label} never replied 429`);
}

/** @param isWarmUp at full speed also where the scenario has a pace, so that busy functions get compiled */
export function slice(
  { subject }: { readonly subject: Subject },
  scenario: Scenario,
  seconds: number,
  { directory, isWarmUp = false }: { readonly directory: string; readonly isWarmUp?: boolean },
): Promise<Slice> {
  const load = loadOf(scenario);
  const { rate } = scenario;
  return measure(subject, () =>
    rate === null || isWarmUp
      ? wrk(load, subject.origin, seconds, directory)
      : paced(load, subject.origin, seconds, rate),
  );
}

/**
 * A limiter that has lost its Redis lets requests through and looks fast. Its figures are not used.
 *
 * @returns why, or null
 */
export function faultOf(found: Slice, scenario: Scenario, countsInRedis: boolean): string | null {
  const { isStoreDown, limits, isDenied } = scenario;
  if (!countsInRedis || isStoreDown || limits === 0 || isDenied) return null;
  return found.storeCommands >= COMMANDS_PER_REQUEST_MIN ? null : 'it did not count in its Redis';
}
