/** Measures one scenario: starts all peers, warms them up, and visits them in turn. */
import type { Peer } from '#bench/peers/peer.ts';
import { inTurn, measure, type Slice, type Subject, WARM_SECONDS } from '#bench/run/measure.ts';
import { paced } from '#bench/run/paced.ts';
import type { Processes } from '#bench/run/processes.ts';
import { missing } from '#bench/run/programs.ts';
import { type RedisServer, startRedis } from '#bench/run/redis.ts';
import { usageOf } from '#bench/run/usage.ts';
import { wrk } from '#bench/run/wrk.ts';
import { freePort } from '#test/support/ports.ts';
import { launchOf, loadOf, type Scenario } from './scenarios.ts';
import { startUpstream } from './upstream.ts';

/** 64 connections can share one script of at least three commands. A process that lost its Redis sends far fewer. */
const COMMANDS_PER_REQUEST_MIN = 0.01;
/** During the warm-up, so many keys a second are used once. */
const WARM_KEYS_PER_SECOND = 10_000;

export interface Measured {
  /** Peer -> slices, one for each round; or the reason why it was not measured. */
  readonly results: Map<Peer, readonly Slice[] | string>;
  /** Floodgate's memory before any load. */
  restRssMb: number;
}

interface Running {
  readonly peer: Peer;
  readonly subject: Subject;
  stop(): Promise<void>;
}

export async function measureScenario(
  processes: Processes,
  scenario: Scenario,
  peers: readonly Peer[],
  { rounds, duration }: { rounds: number; duration: number },
): Promise<Measured> {
  const results = new Map<Peer, readonly Slice[] | string>(peers.map((peer) => [peer, 'it was not started']));
  const measured: Measured = { results, restRssMb: Number.NaN };
  const upstreamPort = await freePort();
  const upstream = await startUpstream(processes, upstreamPort);
  const running: Running[] = [];
  for (const peer of peers) {
    try {
      const one = await startPeer(peer, scenario, processes, upstreamPort);
      running.push(one);
      if (peer.name === 'floodgate') measured.restRssMb = usageOf(one.subject.pids).rssMb;
    } catch (error) {
      results.set(peer, (error as Error).message);
    }
  }
  const warmSeconds = WARM_SECONDS + Math.ceil(scenario.keys / WARM_KEYS_PER_SECOND);
  for (const { subject } of running)
    await visit({ ...scenario, rate: null }, subject, warmSeconds, processes);
  const found = await inTurn(running, rounds, ({ subject }) => visit(scenario, subject, duration, processes));
  for (const [i, { peer }] of running.entries()) {
    const slices = found[i] ?? [];
    const hasLostRedis = peer.countsInRedis === true && !countsEach(scenario, slices);
    results.set(peer, hasLostRedis ? 'it did not count in its Redis' : slices);
  }
  await Promise.all([upstream.stop(), ...running.map((one) => one.stop())]);
  return measured;
}

/** @throws Error when the peer is not installed, or does not do what is measured */
export async function startPeer(
  peer: Peer,
  scenario: Scenario,
  processes: Processes,
  upstreamPort: number,
): Promise<Running> {
  const { name, start } = peer;
  const absent = missing(peer.needs);
  if (absent !== null) throw new Error(absent);
  if (start === null) {
    const subject = { name, origin: `http://127.0.0.1:${upstreamPort}`, pids: [], store: null };
    return { peer, subject, stop: async () => undefined };
  }
  const redis = peer.usesRedis === true ? await startRedis(processes) : null;
  const port = await freePort();
  const place = { processes, port, upstreamPort, redisPort: redis?.port ?? 0 };
  const server = await start({ ...place, ...launchOf(scenario) });
  const origin = `http://127.0.0.1:${port}`;
  if (name !== 'echo') await assertLimits(origin, scenario);
  const store = redis === null ? null : { pids: [redis.pid], commands: () => commandsOf(redis) };
  return {
    peer,
    subject: { name, origin, pids: [server.pid], store },
    async stop() {
      await server.stop();
      await redis?.stop();
    },
  };
}

/** Includes the commands inside scripts. */
async function commandsOf({ client }: RedisServer): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1] ?? 0);
}

/** A peer that does not limit would win every comparison. @throws Error */
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

export function visit(
  scenario: Scenario,
  subject: Subject,
  seconds: number,
  { directory }: Processes,
): Promise<Slice> {
  const load = loadOf(scenario);
  const { rate } = scenario;
  return measure(subject, () =>
    rate === null
      ? wrk(load, subject.origin, seconds, directory)
      : paced(load, subject.origin, seconds, rate),
  );
}

/** A limiter without its Redis lets requests through and looks fast. */
function countsEach({ limits, isDenied }: Scenario, slices: readonly Slice[]): boolean {
  return (
    limits === 0 || isDenied || slices.every(({ storeCommands }) => storeCommands >= COMMANDS_PER_REQUEST_MIN)
  );
}
