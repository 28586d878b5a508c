/** Measures one scenario: starts all peers, warms them up, and visits them in turn. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Peer } from '#bench/peers/peer.ts';
import { Processes } from '#bench/run/processes.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { usageOf } from '#bench/run/usage.ts';
import { freePort } from '#test/support/ports.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { launchOf, type Scenario } from './scenarios.ts';
import { startUpstream } from './upstream.ts';
import { wrk } from './wrk.ts';

/** A Node process costs twice as much in its first second as after five. */
const WARM_SECONDS = 6;
const WARM_CONNECTIONS = 64;
/** One script of three commands can serve 64 connections. A process that lost its Redis sends far fewer commands. */
const COMMANDS_PER_REQUEST_MIN = 0.01;
const BREATH_MS = 100;

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
  readonly rssMb: number;
  readonly storeMb: number;
  readonly refusedShare: number;
  /** Number of requests without a reply, in the whole visit. */
  readonly errors: number;
}

export interface Measured {
  readonly label: string;
  /** One slice for each round. */
  readonly slices: Slice[];
  /** Memory before any load. */
  restRssMb?: number;
  /** Why the peer was not measured. */
  failure?: string;
}

/** A peer that runs. */
interface Running {
  readonly peer: Peer;
  readonly result: Measured;
  readonly scenario: Scenario;
  /** Scheme, host and port. */
  readonly origin: string;
  readonly pids: readonly number[];
  readonly redis: RedisServer | null;
}

/**
 * Visits all peers in each round, in an order that rotates. So a disturbance of the machine affects all of them, and
 * ratios within a round stay fair.
 *
 * @param results by name of the peer; the slices are added to those of an earlier call
 */
export async function measureScenario(
  scenario: Scenario,
  peers: readonly Peer[],
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
  results: Map<string, Measured>,
): Promise<void> {
  await using processes = new Processes();
  const upstreamPort = await startUpstream(processes);
  const running: Running[] = [];
  for (const peer of peers) {
    const own = { ...scenario, ...peer.differences };
    const result: Measured = results.get(peer.name) ?? { label: peer.label, slices: [] };
    results.set(peer.name, result);
    try {
      const one = await startPeer(peer, own, processes, upstreamPort);
      running.push({ ...one, result });
      result.restRssMb = usageOf(one.pids).rssMb;
    } catch (error) {
      result.failure = (error as Error).message;
    }
  }
  for (const one of running) {
    // A key that the gateway does not know costs more, so each is used once.
    let used = 0;
    do {
      const scenario = { ...one.scenario, connections: WARM_CONNECTIONS, firstKey: Math.floor(used) };
      used += (await visit({ ...one, scenario }, WARM_SECONDS, processes)).perSecond * WARM_SECONDS;
    } while (used > 0 && used < one.scenario.keys);
  }
  for (let round = 0; round < rounds; round++) {
    const first = round % running.length;
    for (const one of [...running.slice(first), ...running.slice(0, first)]) {
      await sleep(BREATH_MS);
      one.result.slices.push(await visit(one, seconds, processes));
    }
  }
  for (const { peer, scenario: own, result } of running) {
    const flaw = flawOf(peer, own, result.slices) ?? peer.flaw?.() ?? null;
    if (flaw !== null) result.failure = flaw;
  }
}

/** @throws Error if the peer is not installed, or does not forward requests */
async function startPeer(
  peer: Peer,
  scenario: Scenario,
  processes: Processes,
  upstreamPort: number,
): Promise<Omit<Running, 'result'>> {
  assertInstalled(peer.needs);
  const redis = peer.needs.includes('redis-server') ? await startRedis(processes) : null;
  const port = await freePort();
  const place = { processes, port, upstreamPort, redisPort: redis?.port ?? 0 };
  const server = await peer.start({ ...place, ...launchOf(scenario) });
  const origin = `http://127.0.0.1:${port}`;
  await assertForwards(origin, scenario);
  return { peer, scenario, origin, pids: [server.child.pid ?? 0], redis };
}

async function visit(
  { scenario, origin, pids, redis }: Running,
  visitSeconds: number,
  processes: Processes,
): Promise<Slice> {
  const read = async () => ({
    own: usageOf(pids),
    store: usageOf(redis === null ? [] : [redis.pid]),
    ...(redis === null ? { commands: 0, storeMb: 0 } : await figuresOf(redis)),
  });
  const before = await read();
  const { requests, seconds, refused, errors, p50Ms, p99Ms } = await wrk(
    scenario,
    origin,
    visitSeconds,
    processes,
  );
  const after = await read();
  const each = (value: number): number => (requests === 0 ? Number.NaN : value / requests);
  const cpuUs = each(after.own.cpuUs - before.own.cpuUs);
  const storeCpuUs = each(after.store.cpuUs - before.store.cpuUs);
  return {
    perSecond: requests / seconds,
    ...{ cpuUs, storeCpuUs, totalCpuUs: cpuUs + storeCpuUs, p50Ms, p99Ms, errors },
    storeCommands: each(Math.max(0, after.commands - before.commands)),
    ...{ rssMb: after.own.rssMb, storeMb: after.storeMb, refusedShare: each(refused) },
  };
}

/** Returns the number of executed commands, including those inside scripts, and the memory. */
async function figuresOf({ client }: RedisServer) {
  const text = await client.info('everything');
  const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return { commands: figure('total_commands_processed'), storeMb: figure('used_memory') / 2 ** 20 };
}

/** Checks that the peer forwards the first request. Otherwise its errors would count as refusals. @throws Error */
async function assertForwards(origin: string, { method, path, keys }: Scenario): Promise<void> {
  const headers: Record<string, string> = keys > 0 ? { 'x-api-key': 'fbk_bench_probe' } : {};
  const response = await fetch(`${origin}${path}`, {
    method,
    headers,
    body: method === 'POST' ? '{}' : null,
  });
  await response.text();
  if (response.status !== 200) throw new Error(`it replied ${response.status} to the first request`);
}

/** Finds why the figures of a peer are worth nothing. A limiter that lost its Redis lets requests through and looks fast. */
function flawOf({ countsInRedis }: Peer, { limits, isDenied }: Scenario, slices: readonly Slice[]) {
  if (slices.some(({ refusedShare }) => (isDenied ? refusedShare < 0.5 : refusedShare > 0.01)))
    return isDenied ? 'it admitted requests beyond the limit' : 'it refused requests';
  const isExpected = countsInRedis === true && limits > 0 && !isDenied;
  const isCounted = slices.every(({ storeCommands }) => storeCommands >= COMMANDS_PER_REQUEST_MIN);
  return isExpected && !isCounted ? 'it did not count in Redis' : null;
}
