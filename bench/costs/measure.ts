/** Measures one scenario: starts all peers, warms them up, and visits them in turn. */
import type { Peer } from '#bench/peers/peer.ts';
import { inTurn, measure, type Slice, type Subject, WARM_SECONDS } from '#bench/run/measure.ts';
import { paced } from '#bench/run/paced.ts';
import type { Processes } from '#bench/run/processes.ts';
import { missing } from '#bench/run/programs.ts';
import { startRedis } from '#bench/run/redis.ts';
import { MB, usageOf } from '#bench/run/usage.ts';
import { wrk } from '#bench/run/wrk.ts';
import { freePort } from '#test/support/ports.ts';
import { launchOf, loadOf, type Scenario } from './scenarios.ts';
import { startUpstream } from './upstream.ts';

/** 64 connections can share one script of at least three commands. A process that lost its Redis sends far fewer. */
const COMMANDS_PER_REQUEST_MIN = 0.01;
/** During the warm-up, so many keys a second are used once. */
const WARM_KEYS_PER_SECOND = 10_000;

export interface Measured {
  /** Name of a peer -> slices, one for each round. */
  readonly slices: Map<string, readonly Slice[]>;
  /** Floodgate's memory before any load. */
  restRssMb: number;
  /** Lines about peers without figures. */
  readonly notes: string[];
}

interface Running {
  readonly subject: Subject;
  stop(): Promise<void>;
}

/** @param isDirect also measures the upstream itself, as `direct` */
export async function measureScenario(
  processes: Processes,
  scenario: Scenario,
  peers: readonly Peer[],
  { rounds, duration, isDirect }: { rounds: number; duration: number; isDirect: boolean },
): Promise<Measured> {
  const measured: Measured = { slices: new Map(), restRssMb: Number.NaN, notes: [] };
  const upstreamPort = await freePort();
  const upstream = await startUpstream(processes, upstreamPort);
  const running: Running[] = [];
  for (const peer of peers) {
    try {
      const one = await startPeer(peer, scenario, processes, upstreamPort);
      running.push(one);
      if (peer.name === 'floodgate') measured.restRssMb = usageOf(one.subject.pids).rssBytes / MB;
    } catch (error) {
      measured.notes.push(`left out: ${peer.label}: ${(error as Error).message}`);
    }
  }
  const direct: Subject = {
    name: 'direct',
    origin: `http://127.0.0.1:${upstreamPort}`,
    pids: [],
    store: null,
  };
  const subjects = [...running.map(({ subject }) => subject), ...(isDirect ? [direct] : [])];
  const warmSeconds = WARM_SECONDS + Math.ceil(scenario.keys / WARM_KEYS_PER_SECOND);
  for (const subject of subjects) await visit({ ...scenario, rate: null }, subject, warmSeconds, processes);
  const found = await inTurn(subjects, rounds, (subject) => visit(scenario, subject, duration, processes));
  for (const [i, { name }] of subjects.entries()) {
    const slices = found[i] ?? [];
    const peer = peers.find((one) => one.name === name);
    if (peer === undefined || !hasLostRedis(peer, scenario, slices)) measured.slices.set(name, slices);
    else measured.notes.push(`left out: ${peer.label}: it did not count in its Redis`);
  }
  await Promise.all([upstream.stop(), ...running.map((one) => one.stop())]);
  return measured;
}

/** @throws Error when the peer does not do what is measured */
export async function startPeer(
  peer: Peer,
  scenario: Scenario,
  processes: Processes,
  upstreamPort: number,
): Promise<Running> {
  const command = missing(peer.needs);
  if (command !== null) throw new Error(command);
  const redis = peer.usesRedis ? await startRedis(processes) : null;
  const port = await freePort();
  const redisPort = redis?.port ?? 0;
  const server = await peer.start({ processes, port, upstreamPort, redisPort, ...launchOf(scenario) });
  const origin = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    await server.stop();
    await redis?.stop();
  };
  if (peer.name !== 'echo') await assertLimits(origin, scenario);
  const store = redis === null ? null : { pids: [redis.pid], commands: () => redis.commands() };
  if (scenario.isStoreDown) await redis?.stop();
  return { subject: { name: peer.name, origin, pids: [server.pid], store }, stop };
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
function hasLostRedis({ countsInRedis }: Peer, scenario: Scenario, slices: readonly Slice[]): boolean {
  const { isStoreDown, limits, isDenied } = scenario;
  if (!countsInRedis || isStoreDown || limits === 0 || isDenied) return false;
  return slices.some(({ storeCommands }) => storeCommands < COMMANDS_PER_REQUEST_MIN);
}
