/**
 * Runs scenarios: starts every target of one, warms each up, then visits them in turn, round after round, in an order
 * that rotates. Whatever else this machine does then meets all targets alike, and quotients within a round stay fair.
 */

import { freePort } from '#test/support/ports.ts';
import { viaAutocannon } from './load/autocannon.ts';
import { paced } from './load/paced.ts';
import { wrk } from './load/wrk.ts';
import { measure, notTheJob, type Slice, type Subject, WARM_SECONDS } from './measure.ts';
import type { BenchOptions } from './options.ts';
import { usageOf } from './proc.ts';
import type { Processes } from './processes.ts';
import type { Progress } from './progress.ts';
import type { PeerName, Scenario } from './scenarios.ts';
import { DIRECT_LABEL, peerOf } from './targets/all.ts';
import { type Store, startRedis } from './targets/redis.ts';
import { startUpstream } from './targets/upstream.ts';
import { find } from './tools.ts';

export interface TargetResult {
  readonly name: PeerName;
  readonly label: string;
  /** Before any load. */
  readonly restRssMb: number;
  readonly slices: Slice[];
}

export interface ScenarioResult {
  readonly scenario: Scenario;
  readonly targets: readonly TargetResult[];
  /** Targets that were left out, and why. */
  readonly leftOut: readonly string[];
}

interface Running {
  readonly result: TargetResult;
  readonly subject: Subject;
}

/** So many keys a second are made known before anything is measured. */
const WARM_KEYS_PER_SECOND = 10_000;
const BREATH_MS = 100;

const WITHOUT_FIGURES: Slice = {
  requestsPerSecond: Number.NaN,
  cpuUs: Number.NaN,
  redisCpuUs: Number.NaN,
  totalCpuUs: Number.NaN,
  redisCommands: Number.NaN,
  p50Ms: Number.NaN,
  p99Ms: Number.NaN,
  rssMb: Number.NaN,
  refusedShare: Number.NaN,
  errors: Number.NaN,
};

export class Runner {
  readonly #options: BenchOptions;
  readonly #processes: Processes;
  readonly #progress: Progress;

  constructor(options: BenchOptions, processes: Processes, progress: Progress) {
    this.#options = options;
    this.#processes = processes;
    this.#progress = progress;
  }

  async run(scenario: Scenario): Promise<ScenarioResult> {
    const { rounds, seconds } = this.#options;
    const upstreamPort = await freePort();
    const stops: (() => Promise<void>)[] = [];
    const leftOut: string[] = [];
    const running: Running[] = [];
    try {
      const upstream = await startUpstream(this.#processes, upstreamPort);
      stops.push(() => upstream.stop());
      for (const name of this.#wanted(scenario)) {
        const started = await this.#start(name, scenario, upstreamPort, stops).catch(
          (error: Error) => error.message,
        );
        if (typeof started === 'string') leftOut.push(`${name}: ${started}`);
        else running.push(started);
      }
      for (const line of leftOut) this.#progress.say(`${scenario.name} leaves out ${line}`);
      // At full speed also where the measured pace is slow: what runs for days has compiled its busy functions.
      const fast = find('wrk') === null ? viaAutocannon : wrk(this.#processes.directory);
      const driver = scenario.rate === null ? fast : paced;
      for (const { subject, result } of running) {
        await measure(
          subject,
          scenario,
          fast,
          WARM_SECONDS + Math.ceil(scenario.keys / WARM_KEYS_PER_SECOND),
        );
        this.#progress.step(`${scenario.name}: ${result.name} warms up`);
      }
      for (let round = 0; round < rounds; round++) {
        for (let i = 0; i < running.length; i++) {
          const target = running[(i + round) % running.length];
          if (target === undefined) continue;
          await new Promise((resolve) => setTimeout(resolve, BREATH_MS));
          const slice = await measure(target.subject, scenario, driver, seconds);
          const fault = notTheJob(slice, scenario, peerOf(target.result.name)?.countsInRedis ?? false);
          // Kept in its place, or the pairs of later rounds would no longer be of one round.
          target.result.slices.push(fault === null ? slice : WITHOUT_FIGURES);
          if (fault !== null) leftOut.push(`${target.result.name} in round ${round + 1}: ${fault}`);
          this.#progress.step(`${scenario.name}: round ${round + 1} of ${rounds}, ${target.result.name}`);
        }
      }
    } finally {
      await Promise.all(stops.map((stop) => stop()));
    }
    return { scenario, targets: running.map(({ result }) => result), leftOut };
  }

  #wanted(scenario: Scenario): readonly PeerName[] {
    const { peers } = this.#options;
    return peers === null
      ? scenario.peers
      : scenario.peers.filter((name) => name === 'floodgate' || peers.includes(name));
  }

  async #start(
    name: PeerName,
    scenario: Scenario,
    upstreamPort: number,
    stops: (() => Promise<void>)[],
  ): Promise<Running | string> {
    const peer = peerOf(name);
    if (peer === undefined) {
      const result = { name, label: DIRECT_LABEL, restRssMb: Number.NaN, slices: [] };
      return { result, subject: { port: upstreamPort, pids: [], store: null } };
    }
    const missing = peer.missing();
    if (missing !== null) return missing;
    let store: Store | null = null;
    const redisPort = await freePort();
    if (peer.usesRedis) {
      store = await startRedis(this.#processes, redisPort);
      stops.push(store.stop);
    }
    const port = await freePort();
    const { directory } = this.#processes;
    const started = await peer.start({
      processes: this.#processes,
      scenario,
      port,
      upstreamPort,
      redisPort,
      directory,
    });
    stops.push(() => started.stop());
    await assertDoesTheJob(port, scenario, peer.label);
    const restRssMb = usageOf([started.pid]).rssBytes / 1_048_576;
    if (scenario.storeDown) await store?.stop();
    return {
      result: { name, label: peer.label, restRssMb, slices: [] },
      subject: { port, pids: [started.pid], store },
    };
  }
}

/** A target that does not do what it is measured for would win every comparison. */
async function assertDoesTheJob(port: number, scenario: Scenario, label: string): Promise<void> {
  const ask = async (): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${port}${scenario.path}`, {
      method: scenario.method,
      headers: scenario.keys > 0 ? { 'x-api-key': 'fbk_bench_probe' } : {},
      ...(scenario.method === 'POST' ? { body: '{}' } : {}),
    });
    await response.text();
    return response.status;
  };
  const first = await ask();
  if (first !== 200) throw new Error(`${label} answered ${first} to the first request`);
  if (scenario.expect === 'allowed') return;
  const statuses = await Promise.all(Array.from({ length: 400 }, ask));
  if (!statuses.includes(429)) throw new Error(`${label} never answered 429`);
}
