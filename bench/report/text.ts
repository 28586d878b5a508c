/** The results as tables for a terminal. */
import type { Machine } from '../machine.ts';
import type { GoalResult } from './goals.ts';
import type { ScenarioSummary, TargetSummary } from './summary.ts';

const COLUMNS: readonly (readonly [head: string, cell: (target: TargetSummary) => string])[] = [
  ['', ({ label }) => label],
  ['req/s', ({ figures }) => rounded(figures.requestsPerSecond.median, 0)],
  ['CPU µs', ({ figures }) => rounded(figures.cpuUs.median, 1)],
  ['p25-p75', ({ figures }) => `${rounded(figures.cpuUs.p25, 1)}-${rounded(figures.cpuUs.p75, 1)}`],
  ['min', ({ figures }) => rounded(figures.cpuUs.min, 1)],
  ['Redis µs', ({ figures }) => rounded(figures.redisCpuUs.median, 1)],
  ['Redis cmds', ({ figures }) => rounded(figures.redisCommands.median, 2)],
  ['p50 ms', ({ figures }) => rounded(figures.p50Ms.median, 2)],
  ['p99 ms', ({ figures }) => rounded(figures.p99Ms.median, 2)],
  ['RSS MB', ({ figures }) => rounded(figures.rssMb.median, 0)],
  ['refused', ({ figures }) => `${rounded(figures.refusedShare.median * 100, 1)} %`],
  ['errors', ({ figures }) => rounded(figures.errors.max, 0)],
  ['ours/theirs', ({ ratio }) => rounded(ratio.process.median, 2)],
  ['with Redis', ({ ratio }) => rounded(ratio.withRedis.median, 2)],
];

export function rounded(value: number, digits: number): string {
  return Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : '-';
}

export function machineText(machine: Machine): string {
  const versions = Object.entries(machine.versions).map(([name, value]) => `${name} ${value}`);
  return [
    `${machine.at}, commit ${machine.commit}`,
    `${machine.cores} × ${machine.cpu}, ${machine.memoryGb} GB, Linux ${machine.kernel}, load ${machine.loadAverage}, driven by ${machine.driver}`,
    versions.join(', '),
  ].join('\n');
}

export function scenarioText(summary: ScenarioSummary): string {
  const rows = [
    COLUMNS.map(([head]) => head),
    ...summary.targets.map((t) => COLUMNS.map(([, cell]) => cell(t))),
  ];
  const notes = summary.leftOut.map((line) => `left out: ${line}`);
  return [`${summary.title} (${summary.name}, ${summary.rounds} rounds)`, table(rows), ...notes].join('\n');
}

export function goalText(goals: readonly GoalResult[]): string {
  const rows = goals.map(({ text, atMost, measured, verdict }) => [
    text,
    `≤ ${atMost}`,
    rounded(measured.median, 2),
    `${rounded(measured.p25, 2)}-${rounded(measured.p75, 2)}`,
    verdict,
  ]);
  return ['Goals', table([['', 'goal', 'median', 'p25-p75', ''], ...rows])].join('\n');
}

/** First column to the left, the others to the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join('  '),
    )
    .join('\n');
}
