/** `npm run bench`: compares what a request costs with Floodgate and with its peers. */
import { type Bench, command, names, UsageError, whole } from '#bench/command.ts';
import { goalTable } from '#bench/costs/goals.ts';
import { SCENARIOS, type Scenario } from '#bench/costs/scenarios.ts';
import { assertLimits, faultOf, type Running, slice, startCandidate } from '#bench/costs/subject.ts';
import { scenarioTable } from '#bench/costs/table.ts';
import { startUpstream } from '#bench/costs/upstream.ts';
import { PEERS } from '#bench/peers/all.ts';
import type { Peer } from '#bench/peers/peer.ts';
import { describeMachine } from '#bench/run/machine.ts';
import { inTurn, type Slice, WARM_SECONDS } from '#bench/run/measure.ts';
import { missing } from '#bench/run/programs.ts';
import { Report } from '#bench/run/report.ts';
import { MB, usageOf } from '#bench/run/usage.ts';
import { freePort } from '#test/support/ports.ts';

/** Before a measurement, so many keys a second are used once. */
const WARM_KEYS_PER_SECOND = 10_000;
const SCENARIO_NAMES = SCENARIOS.map(({ name }) => name);
const PEER_NAMES = [...PEERS.map(({ name }) => name), 'direct'];
const NOTHING: Slice = {
  ...{ perSecond: Number.NaN, cpuUs: Number.NaN, storeCpuUs: Number.NaN, totalCpuUs: Number.NaN },
  ...{ storeCommands: Number.NaN, p50Ms: Number.NaN, p99Ms: Number.NaN, rssMb: Number.NaN },
  ...{ refusedShare: Number.NaN, errors: Number.NaN },
};

interface Measured {
  /** Peer -> slices, one for each round. */
  readonly slices: ReadonlyMap<string, readonly Slice[]>;
  /** Floodgate's memory before any load. */
  readonly restRssMb: number | undefined;
  /** Peers or rounds without figures, and why. */
  readonly leftOut: readonly string[];
}

async function measureScenario(
  { processes }: Bench,
  scenario: Scenario,
  peers: readonly string[],
  { rounds, duration }: { readonly rounds: number; readonly duration: number },
): Promise<Measured> {
  const { directory } = processes;
  const upstreamPort = await freePort();
  const upstream = await startUpstream(processes, upstreamPort);
  const leftOut: string[] = [];
  const running: Running[] = [];
  let restRssMb: number | undefined;
  for (const peer of PEERS.filter(({ name }) => name === 'floodgate' || peers.includes(name))) {
    try {
      running.push(await start(peer));
    } catch (error) {
      leftOut.push(`left out: ${peer.name}: ${(error as Error).message}`);
    }
  }
  async function start(peer: Peer): Promise<Running> {
    const what = missing(peer.needs);
    if (what !== null) throw new Error(what);
    const one = await startCandidate(peer, scenario, { processes, upstreamPort });
    await assertLimits(one, scenario);
    if (peer.name === 'floodgate') restRssMb = usageOf([one.server.pid]).rssBytes / MB;
    if (scenario.isStoreDown) await one.redis?.stop();
    return one;
  }

  const subjects = running.map(({ subject }) => subject);
  if (peers.includes('direct'))
    subjects.push({ name: 'direct', origin: `http://127.0.0.1:${upstreamPort}`, pids: [], store: null });
  const warmSeconds = WARM_SECONDS + Math.ceil(scenario.keys / WARM_KEYS_PER_SECOND);
  for (const subject of subjects)
    await slice({ subject }, scenario, warmSeconds, { directory, isWarmUp: true });
  const found = await inTurn(subjects, rounds, async (subject, round) => {
    const peer = PEERS.find(({ name }) => name === subject.name);
    const one = await slice({ subject }, scenario, duration, { directory });
    const fault = faultOf(one, scenario, peer?.countsInRedis ?? false);
    if (fault === null) return one;
    leftOut.push(`left out: ${subject.name} in round ${round + 1}: ${fault}`);
    // It keeps its place, so that later rounds are still compared with each other.
    return NOTHING;
  });
  await Promise.all([upstream.stop(), ...running.map((one) => one.stop())]);
  const slices = new Map(subjects.map(({ name }, i) => [name, found[i] ?? []]));
  return { slices, restRssMb, leftOut };
}

export const PEERS_COMMAND = command({
  command: ['peers', '$0'],
  describe: 'Compares what a request costs with Floodgate and with its peers',
  builder: (program) =>
    program.options({
      only: names('only', SCENARIO_NAMES, 'Scenarios'),
      peers: names('peers', PEER_NAMES, 'Only these peers beside Floodgate'),
      rounds: whole('rounds', 5, 1000, 7, 'Rounds, each of which visits every peer once'),
      duration: whole('duration', 1, 600, 3, 'Seconds of one visit'),
      quick: { type: 'boolean', default: false, describe: '5 rounds of 1 second' },
    }),
  async run(bench, { only = SCENARIO_NAMES, peers = PEER_NAMES, rounds, duration, quick }) {
    const needed = missing(['wrk', 'redis-server']);
    if (needed !== null) throw new UsageError(needed);
    const report = new Report('bench', describeMachine(['gateway', 'policies.yaml']));
    const plan = quick ? { rounds: 5, duration: 1 } : { rounds, duration };
    const results = new Map<string, Measured['slices']>();
    let restRssMb: number | undefined;
    for (const scenario of SCENARIOS.filter(({ name }) => only.includes(name))) {
      const wanted = scenario.peers.filter((name) => peers.includes(name));
      const measured = await measureScenario(bench, scenario, wanted, plan);
      report.add(scenarioTable(scenario, measured.slices, measured.leftOut));
      results.set(scenario.name, measured.slices);
      if (scenario.name === 'hot') restRssMb = measured.restRssMb;
    }
    const goals = goalTable(results, restRssMb);
    if (goals !== null) report.add(goals);
    report.write(
      [...results].map(([scenario, slices]) => ({ scenario, slices: Object.fromEntries(slices) })),
    );
    return true;
  },
});
