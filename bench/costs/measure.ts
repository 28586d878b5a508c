/** Measures one scenario: starts all peers, warms them up, and visits them in turn. */
import type { Peer } from '#bench/peers/peer.ts';
import { type Compared, comparisonTable, ratios } from '#bench/run/comparison.ts';
import { compare, type Slice, type Subject } from '#bench/run/measure.ts';
import type { Processes } from '#bench/run/processes.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { type RedisServer, startRedis } from '#bench/run/redis.ts';
import type { Table } from '#bench/run/report.ts';
import { usageOf } from '#bench/run/usage.ts';
import { freePort } from '#test/support/ports.ts';
import { launchOf, loadOf, type Scenario } from './scenarios.ts';
import { startUpstream } from './upstream.ts';

/** A Node process costs twice as much in its first second as after five. */
const WARM_SECONDS = 6;
/** One script of three commands can serve 64 connections. A process that lost its Redis sends far fewer commands. */
const COMMANDS_PER_REQUEST_MIN = 0.01;
/** The warm-up is long enough to use each key once at this rate. */
const WARM_KEYS_PER_SECOND = 10_000;

/** Results by name of the peer. */
export type Measured = Map<string, Compared & { readonly restRssMb?: number }>;

interface Running extends Subject {
  readonly peer: Peer;
  /** Memory before any load. */
  readonly restRssMb: number;
  stop(): Promise<void>;
}

export async function measureScenario(
  processes: Processes,
  scenario: Scenario,
  peers: readonly Peer[],
  { rounds, duration: seconds }: { rounds: number; duration: number },
): Promise<Measured> {
  const measured: Measured = new Map();
  const upstreamPort = await freePort();
  const upstream = await startUpstream(processes, upstreamPort);
  const running: Running[] = [];
  for (const peer of peers) {
    const none = { label: peer.label, slices: [] };
    measured.set(peer.name, none);
    try {
      running.push(await startPeer(peer, scenario, processes, upstreamPort));
    } catch (error) {
      measured.set(peer.name, { ...none, failure: (error as Error).message });
    }
  }
  const warmSeconds = WARM_SECONDS + Math.ceil(scenario.keys / WARM_KEYS_PER_SECOND);
  const plan = { warmSeconds, rounds, seconds, processes };
  const found = await compare(running, plan);
  const direct = [...found].find(([{ peer }]) => peer.name === 'direct')?.[1] ?? [];
  for (const [{ peer, restRssMb }, own] of found) {
    const slices = own.map((slice, i) => ({
      ...slice,
      addedMs: slice.p50Ms - (direct[i]?.p50Ms ?? Number.NaN),
    }));
    const hasLostRedis = peer.countsInRedis === true && !countsEach(scenario, slices);
    const failure = hasLostRedis ? { failure: 'it did not count in Redis' } : {};
    measured.set(peer.name, { label: peer.label, slices, restRssMb, ...failure });
  }
  await Promise.all([upstream, ...running].map((one) => one.stop()));
  return measured;
}

/** @throws Error if the peer is not installed, or does not limit requests */
async function startPeer(
  peer: Peer,
  scenario: Scenario,
  processes: Processes,
  upstreamPort: number,
): Promise<Running> {
  assertInstalled(peer.needs);
  const load = loadOf(scenario);
  if (peer.start === null) {
    const origin = `http://127.0.0.1:${upstreamPort}`;
    return { peer, origin, load, pids: [], store: null, restRssMb: Number.NaN, stop: async () => undefined };
  }
  const redis = peer.needs.includes('redis-server') ? await startRedis(processes) : null;
  const port = await freePort();
  const place = { processes, port, upstreamPort, redisPort: redis?.port ?? 0 };
  const server = await peer.start({ ...place, ...launchOf(scenario) });
  const origin = `http://127.0.0.1:${port}`;
  if (peer.name !== 'echo') await assertLimits(origin, scenario);
  const restRssMb = usageOf([server.pid]).rssMb;
  const store = redis === null ? null : { pids: [redis.pid], commands: () => commandsOf(redis) };
  return {
    ...{ peer, origin, load, pids: [server.pid], store, restRssMb },
    async stop() {
      await server.stop();
      await redis?.stop();
    },
  };
}

export function scenarioTable({ name, title, rate }: Scenario, measured: Measured): Table {
  const ours = measured.get('floodgate')?.slices ?? [];
  const against = (head: string, measure: keyof Slice) => ({
    ...{ head, of: (theirs: readonly Slice[]) => ratios(ours, theirs, measure) },
  });
  const added = {
    head: 'added p50 ms',
    of: (slices: readonly Slice[]) => slices.map(({ addedMs }) => addedMs),
  };
  return comparisonTable(`${title} (${name}, ${ours.length} rounds)`, measured.values(), [
    against('ours/theirs', 'cpuUs'),
    against('with Redis', 'totalCpuUs'),
    against('Redis alone', 'storeCpuUs'),
    ...(rate === null ? [] : [added]),
  ]);
}

/** Returns the number of executed commands, including those inside scripts. */
async function commandsOf({ client }: RedisServer): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1] ?? 0);
}

/** Checks that the peer limits requests. Otherwise it would win every comparison. @throws Error */
async function assertLimits(origin: string, { method, path, keys, isDenied }: Scenario): Promise<void> {
  const ask = async (): Promise<number> => {
    const headers: Record<string, string> = keys > 0 ? { 'x-api-key': 'fbk_bench_probe' } : {};
    const body = method === 'POST' ? { body: '{}' } : {};
    const response = await fetch(`${origin}${path}`, { method, headers, ...body });
    await response.text();
    return response.status;
  };
  const first = await ask();
  if (first !== 200) throw new Error(`it replied ${first} to the first request`);
  if (isDenied && !(await Promise.all(Array.from({ length: 400 }, ask))).includes(429))
    throw new Error('it never replied 429');
}

/** Whether the peer counts in Redis. A limiter that lost its Redis lets requests through and looks fast. */
function countsEach({ limits, isDenied }: Scenario, slices: readonly Slice[]): boolean {
  return (
    limits === 0 || isDenied || slices.every(({ storeCommands }) => storeCommands >= COMMANDS_PER_REQUEST_MIN)
  );
}
