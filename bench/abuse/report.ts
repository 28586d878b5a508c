/** The results as a table for a terminal, a line a target. */
import { rounded, table } from '../report/text.ts';
import type { AbuseResult } from './runner.ts';
import type { AbuseScenario } from './scenario.ts';
import { type Goal, judge, P99_FLOOR_MS, P99_TIMES_MAX, RSS_MB_MAX } from './verdict.ts';

export interface ScenarioReport {
  readonly scenario: AbuseScenario;
  readonly results: readonly AbuseResult[];
  readonly leftOut: readonly string[];
}

const HEAD = [
  '',
  'victim',
  'p50 ms',
  'p99 ms',
  'alone p99',
  'direct p99',
  'machine p99',
  'RSS MB',
  'keys',
  'admitted',
  'attack',
  'verdict',
];

export function scenarioLines({ scenario, results, leftOut }: ScenarioReport): string {
  const rows = results.map((result) => {
    const { attacked, undisturbed, controls, attack } = result;
    return [
      result.target,
      `${rounded(attacked.success * 100, 1)} %`,
      rounded(attacked.p50Ms, 1),
      rounded(attacked.p99Ms, 1),
      rounded(undisturbed.p99Ms, 1),
      rounded(controls.upstreamP99Ms, 1),
      rounded(controls.machineP99Ms, 1),
      rounded(result.rssPeakMb, 0),
      result.redisKeys === null ? '-' : rounded(result.redisKeys, 0),
      rounded(result.admitted, 0),
      `${attack.requests} on ${attack.connected}`,
      verdictOf(judge(scenario, result)),
    ];
  });
  const failures = results.flatMap(({ target, attacked }) =>
    Object.entries(attacked.failures).map(([reason, count]) => `${target}: ${count} × ${reason}`),
  );
  return [
    `${scenario.name}: ${scenario.title}`,
    table([HEAD, ...rows]),
    ...leftOut.map((line) => `left out: ${line}`),
    ...failures.map((line) => `  ${line}`),
  ].join('\n');
}

function verdictOf(goals: readonly Goal[]): string {
  const missed = goals.filter(({ reached }) => !reached);
  return missed.length === 0
    ? 'reached'
    : `not reached: ${missed.map((goal) => `${goal.name} ${goal.said}`).join(', ')}`;
}

export function totalLines(reports: readonly ScenarioReport[]): string {
  const count = new Map<string, { reached: number; all: number }>();
  for (const { scenario, results } of reports) {
    for (const result of results) {
      const of = count.get(result.target) ?? { reached: 0, all: 0 };
      of.all++;
      if (judge(scenario, result).every(({ reached }) => reached)) of.reached++;
      count.set(result.target, of);
    }
  }
  const lines = [...count].map(
    ([target, { reached, all }]) => `${target}: ${reached} of ${all} scenarios reached`,
  );
  return [
    ...lines,
    `Reached: no request of the victim fails, its p99 is at most ${P99_TIMES_MAX} times the undisturbed one (or below ${P99_FLOOR_MS} ms),`,
    `a process has at most ${RSS_MB_MAX} MB, and what else a scenario asks for.`,
  ].join('\n');
}
