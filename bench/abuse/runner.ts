/** One scenario on one target: fresh processes, the victim alone, then the victim beside the attack. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '#test/support/ports.ts';
import { peakRssBytesOf } from '../proc.ts';
import type { Processes } from '../processes.ts';
import { quantile } from '../statistics.ts';
import { BENCH, NODE } from '../tools.ts';
import { ANSWER_MS_MAX } from './ask.ts';
import type { AttackCounts } from './attacks/attacker.ts';
import { type ControlFigures, visitControls } from './controls.ts';
import type { AbuseScenario } from './scenario.ts';
import { type AbuseStore, startStore } from './store.ts';
import type { AbuseTarget } from './targets/target.ts';
import { STATS_PATH, type UpstreamStats } from './upstream-paths.ts';
import { type VictimResult, victimOf, visit } from './victim.ts';
import { warmUp } from './warm-up.ts';

const SAMPLE_MS = 250;
/** The attack is in full swing when the victim's figures begin. */
const HEAD_START_MS = 500;

export interface Durations {
  readonly undisturbedSeconds: number;
  readonly attackSeconds: number;
}

export interface VictimFigures {
  readonly sent: number;
  /** From 0 to 1. */
  readonly success: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failures: Readonly<Record<string, number>>;
}

export interface AbuseResult {
  readonly target: string;
  readonly undisturbed: VictimFigures;
  readonly attacked: VictimFigures;
  /** Beside the attack as well. */
  readonly controls: ControlFigures;
  readonly rssPeakMb: number;
  /** null where there is no Redis. */
  readonly redisKeys: number | null;
  readonly admitted: number;
  readonly smuggled: number;
  /** Minutes of the clock that the attack touched. */
  readonly minutes: number;
  readonly attack: AttackCounts;
  /** null: the target lived. */
  readonly died: string | null;
}

export async function runOn(
  target: AbuseTarget,
  scenario: AbuseScenario,
  durations: Durations,
  processes: Processes,
): Promise<AbuseResult> {
  const stops: (() => Promise<void>)[] = [];
  try {
    const upstreamPort = await freePort();
    const upstream = await processes.start(
      'the upstream',
      NODE,
      [join(BENCH, 'abuse', 'upstream.ts'), String(upstreamPort)],
      { port: upstreamPort },
    );
    stops.push(() => upstream.stop('SIGKILL'));
    const bystanderPort = await freePort();
    const bystander = await processes.start(
      'a server that nobody attacks',
      NODE,
      [join(BENCH, 'abuse', 'upstream.ts'), String(bystanderPort)],
      { port: bystanderPort },
    );
    stops.push(() => bystander.stop('SIGKILL'));
    const controlPorts = { upstream: upstreamPort, bystander: bystanderPort };
    const store = target.usesRedis ? await startStore(processes, scenario.store ?? null) : null;
    if (store !== null) stops.push(store.stop);
    const port = await freePort();
    const redisPort = store?.port ?? 0;
    const server = await target.start({ processes, scenario, port, upstreamPort, redisPort });
    stops.push(() => server.stop(target.stopSignal));
    const isTls = scenario.isTls === true;
    await warmUp(port, isTls);

    const kind = scenario.victim ?? 'stranger';
    const victim = { ...victimOf(kind, 'fbk_valid_victim'), isTls };
    const [alone] = await Promise.all([
      visit(victim, port, durations.undisturbedSeconds),
      visitControls(controlPorts, durations.undisturbedSeconds),
    ]);
    const undisturbed = figuresOf(alone);

    const keysBefore = (await store?.keys()) ?? 0;
    const seen = watch(server.pid, store);
    const began = Date.now();
    // It goes on until the victim's last request has its answer, or will not get one.
    const secondsMax = durations.attackSeconds + (HEAD_START_MS + 2 * ANSWER_MS_MAX) / 1000;
    const attacker = await processes.start(
      'the attacker',
      NODE,
      [join(BENCH, 'abuse', 'attacks', 'main.ts'), scenario.name, String(port), String(secondsMax)],
      { readyText: 'attacking' },
    );
    stops.push(() => attacker.stop('SIGKILL'));
    await sleep(HEAD_START_MS);
    const [visited, controls] = await Promise.all([
      visit(victim, port, durations.attackSeconds),
      visitControls(controlPorts, durations.attackSeconds),
      store?.trouble(),
    ]);
    await attacker.stop();
    // Its last words may arrive after its end.
    for (let i = 0; i < 50 && lastWords(attacker.output()) === undefined; i++) await sleep(20);
    const peak = seen.stop();
    const stats = await statsOf(upstreamPort);
    return {
      target: target.name,
      undisturbed,
      attacked: figuresOf(visited),
      controls,
      rssPeakMb: Math.max(peak.rssBytes, peakRssBytesOf([server.pid])) / 1_048_576,
      redisKeys: store === null ? null : Math.max(0, peak.keys - keysBefore),
      ...stats,
      minutes: Math.floor(Date.now() / 60_000) - Math.floor(began / 60_000) + 1,
      attack: countsIn(attacker.output()),
      died: server.ending(),
    };
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

/** Peaks that would be gone at the end. */
function watch(pid: number, store: AbuseStore | null): { stop(): { rssBytes: number; keys: number } } {
  const peak = { rssBytes: 0, keys: 0 };
  const timer = setInterval(() => {
    peak.rssBytes = Math.max(peak.rssBytes, peakRssBytesOf([pid]));
    store?.keys().then((keys) => {
      peak.keys = Math.max(peak.keys, keys ?? 0);
    });
  }, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      return peak;
    },
  };
}

function figuresOf({ sent, succeeded, latenciesMs, failures }: VictimResult): VictimFigures {
  return {
    sent,
    success: sent === 0 ? Number.NaN : succeeded / sent,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
    failures,
  };
}

async function statsOf(upstreamPort: number): Promise<UpstreamStats> {
  const response = await fetch(`http://127.0.0.1:${upstreamPort}${STATS_PATH}`, {
    signal: AbortSignal.timeout(5000),
  });
  return (await response.json()) as UpstreamStats;
}

function lastWords(output: string): string | undefined {
  return output.split('\n').findLast((text) => text.startsWith('{') && text.endsWith('}'));
}

/** @throws when the attacker ended without saying what it did */
function countsIn(output: string): AttackCounts {
  const line = lastWords(output);
  if (line === undefined) throw new Error(`the attacker failed:\n${output}`);
  return JSON.parse(line) as AttackCounts;
}
