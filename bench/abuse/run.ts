/**
 * `npm run bench -- --abuse`: one hostile address, and a polite client beside it, in front of the same upstream.
 *
 * Every scenario visits Floodgate, NGINX and HAProxy in turn, each with fresh processes. First the victim is measured
 * alone, then beside the attack, which runs in a process of its own so that its work does not disturb the victim's
 * clock. All is bounded: 600 sockets, 1,500 requests a second, a few seconds a visit, loopback only.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeMachine } from '../machine.ts';
import { canMeasure } from '../proc.ts';
import type { Processes } from '../processes.ts';
import { Progress } from '../progress.ts';
import { machineText } from '../report/text.ts';
import { BENCH, installPrograms } from '../tools.ts';
import { type ScenarioReport, scenarioLines, totalLines } from './report.ts';
import { type AbuseResult, type Durations, runOn } from './runner.ts';
import { type AbuseScenario, TARGETS, type TargetName } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';
import { FLOODGATE } from './targets/floodgate.ts';
import { HAPROXY } from './targets/haproxy.ts';
import { NGINX } from './targets/nginx.ts';
import type { AbuseTarget } from './targets/target.ts';
import { judge } from './verdict.ts';

export interface AbuseOptions {
  readonly only: readonly string[];
  /** Besides Floodgate; null: all. */
  readonly peers: readonly string[] | null;
  readonly quick: boolean;
  readonly install: boolean;
}

const TARGET: Readonly<Record<TargetName, AbuseTarget>> = {
  floodgate: FLOODGATE,
  nginx: NGINX,
  haproxy: HAPROXY,
};
const DURATIONS: Durations = { undisturbedSeconds: 2.5, attackSeconds: 5 };
const QUICK: Durations = { undisturbedSeconds: 2, attackSeconds: 2.5 };

export async function abuse(options: AbuseOptions, processes: Processes): Promise<void> {
  if (!canMeasure()) throw new Error('memory is read from /proc: run this on Linux');
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  if (options.install) installPrograms(say);
  const scenarios = SCENARIOS.filter(({ name }) => options.only.includes(name));
  const machine = describeMachine(new Date());
  process.stdout.write(`${machineText(machine)}\n\n`);
  const progress = new Progress(
    scenarios.reduce((sum, scenario) => sum + targetsOf(scenario, options).length, 0),
  );
  const reports: ScenarioReport[] = [];
  try {
    for (const scenario of scenarios) {
      const results: AbuseResult[] = [];
      const leftOut: string[] = [];
      for (const target of targetsOf(scenario, options)) {
        // One visit that fails is told and does not end a run of twenty minutes.
        const visited = await visitOf(target, scenario, options, processes).catch(
          (error: Error) => error.message,
        );
        if (typeof visited === 'string') leftOut.push(`${target.label}: ${visited}`);
        else results.push(visited);
        progress.step(`${scenario.name}: ${target.label}`);
      }
      progress.end();
      const report = { scenario, results, leftOut };
      reports.push(report);
      process.stdout.write(`${scenarioLines(report)}\n\n`);
    }
  } finally {
    progress.end();
    await processes.stopAll();
  }
  process.stdout.write(`${totalLines(reports)}\n`);
  const folder = join(BENCH, 'results');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `abuse-${machine.at.replaceAll(/[:.]/g, '-')}.json`);
  const json = reports.map(({ scenario, results, leftOut }) => ({
    scenario: scenario.name,
    title: scenario.title,
    results: results.map((result) => ({ ...result, goals: judge(scenario, result) })),
    leftOut,
  }));
  writeFileSync(file, `${JSON.stringify({ machine, reports: json }, null, 1)}\n`);
  process.stdout.write(`written to ${file}\n`);
}

async function visitOf(
  target: AbuseTarget,
  scenario: AbuseScenario,
  { quick }: AbuseOptions,
  processes: Processes,
): Promise<AbuseResult | string> {
  return target.missing() ?? runOn(target, scenario, quick ? QUICK : DURATIONS, processes);
}

function targetsOf(scenario: AbuseScenario, { peers }: AbuseOptions): readonly AbuseTarget[] {
  return (scenario.targets ?? TARGETS)
    .filter((name) => name === 'floodgate' || peers === null || peers.includes(name))
    .map((name) => TARGET[name]);
}
