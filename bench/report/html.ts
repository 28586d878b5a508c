/** The results as one page without anything from elsewhere: charts are inline SVG. */
import type { Machine } from '../machine.ts';
import type { Spread } from '../statistics.ts';
import type { GoalResult } from './goals.ts';
import type { ScenarioSummary, TargetSummary } from './summary.ts';
import { machineText, rounded } from './text.ts';

const STYLE = `
:root { color-scheme: light dark; --ours: #0a7d6c; --theirs: #8894a6; --redis: #d08a2e; --ink: light-dark(#1b2330, #e4e8ee);
  --soft: light-dark(#5b6675, #9aa5b4); --line: light-dark(#dde2e8, #323a45); --page: light-dark(#ffffff, #14181d); }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
pre, small { color: var(--soft); white-space: pre-wrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 500; }
.ours { font-weight: 600; } .missed { color: light-dark(#b3261e, #ff8a80); } .reached { color: light-dark(#0a7d6c, #5fd0bd); }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; } svg .soft { fill: var(--soft); }
`;

const ROW = 26;
const LEFT = 370;
const WIDTH = 920;
const BAR = 14;

export function page(
  machine: Machine,
  summaries: readonly ScenarioSummary[],
  goals: readonly GoalResult[],
): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Floodgate bench ${escaped(machine.commit)}</title><style>${STYLE}</style></head><body>
<h1>What a request costs</h1>
<p>CPU time per request of the serving processes (green: Floodgate, grey: others) and of their Redis (amber): medians over
alternating rounds of one run, the thin line from the lower to the upper quartile. Shorter is better.</p>
<pre>${escaped(machineText(machine))}</pre>
${goals.length > 0 ? `<h2>Goals</h2>${goalTable(goals)}` : ''}
${summaries.map(section).join('\n')}
</body></html>
`;
}

function section(summary: ScenarioSummary): string {
  const notes = summary.leftOut.map((line) => `<p><small>left out: ${escaped(line)}</small></p>`);
  return `<h2>${escaped(summary.title)}</h2>${chart(summary)}${figureTable(summary)}${notes.join('')}`;
}

/** Paced load tells by latency, any other by cost. */
function chart(summary: ScenarioSummary): string {
  const isPaced = summary.name === 'latency';
  const main = (target: TargetSummary): Spread => (isPaced ? target.figures.p50Ms : target.figures.cpuUs);
  const redis = (target: TargetSummary): number => (isPaced ? 0 : target.figures.redisCpuUs.median || 0);
  const unit = isPaced ? 'ms' : 'µs';
  const longest = Math.max(
    ...summary.targets.map((t) => Math.max(main(t).p75, main(t).median + redis(t)) || 0),
    1e-9,
  );
  const scale = (WIDTH - LEFT - 150) / longest;
  const shown = summary.targets.filter((target) => main(target).median > 0);
  const rows = shown.map((target, i) => {
    const { median, p25, p75 } = main(target);
    const y = i * ROW + 6;
    const color = target.name.startsWith('floodgate') ? 'var(--ours)' : 'var(--theirs)';
    const end = LEFT + (median + redis(target)) * scale;
    const sum =
      redis(target) > 0
        ? `${rounded(median, 1)} + ${rounded(redis(target), 1)} ${unit}`
        : `${rounded(median, isPaced ? 2 : 1)} ${unit}`;
    return `<text x="${LEFT - 8}" y="${y + 11}" text-anchor="end">${escaped(target.label)}</text>
<rect x="${LEFT}" y="${y}" width="${(median * scale).toFixed(1)}" height="${BAR}" rx="2" fill="${color}"/>
<rect x="${(LEFT + median * scale).toFixed(1)}" y="${y}" width="${(redis(target) * scale).toFixed(1)}" height="${BAR}" rx="2" fill="var(--redis)"/>
<path d="M${(LEFT + p25 * scale).toFixed(1)} ${y + BAR + 2.5}H${(LEFT + p75 * scale).toFixed(1)}" stroke="${color}" stroke-width="1.5"/>
<text class="soft" x="${(end + 8).toFixed(1)}" y="${y + 11}">${sum}</text>`;
  });
  return `<svg viewBox="0 0 ${WIDTH} ${shown.length * ROW + 6}" role="img" aria-label="${escaped(summary.title)}">${rows.join('\n')}</svg>`;
}

function figureTable(summary: ScenarioSummary): string {
  const head = [
    '',
    'requests/s',
    'CPU µs',
    'min',
    'Redis µs',
    'Redis commands',
    'p50 ms',
    'p99 ms',
    'RSS MB',
    'refused',
    'Floodgate / this',
    'with Redis',
  ];
  const rows = summary.targets.map(({ name, label, figures, ratio }) => {
    const cells = [
      escaped(label),
      rounded(figures.requestsPerSecond.median, 0),
      rounded(figures.cpuUs.median, 1),
      rounded(figures.cpuUs.min, 1),
      rounded(figures.redisCpuUs.median, 1),
      rounded(figures.redisCommands.median, 2),
      rounded(figures.p50Ms.median, 2),
      rounded(figures.p99Ms.median, 2),
      rounded(figures.rssMb.median, 0),
      `${rounded(figures.refusedShare.median * 100, 1)} %`,
      rounded(ratio.process.median, 2),
      rounded(ratio.withRedis.median, 2),
    ];
    return `<tr class="${name === 'floodgate' ? 'ours' : ''}">${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  return tableOf(head, rows);
}

function goalTable(goals: readonly GoalResult[]): string {
  const rows = goals.map(({ text, atMost, measured, verdict }) => {
    const cells = [
      text,
      `≤ ${atMost}`,
      rounded(measured.median, 2),
      `${rounded(measured.p25, 2)}-${rounded(measured.p75, 2)}`,
    ];
    return `<tr>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}<td class="${verdict}">${verdict}</td></tr>`;
  });
  return tableOf(['', 'goal', 'median', 'quartiles', ''], rows);
}

function tableOf(head: readonly string[], rows: readonly string[]): string {
  return `<div class="scroll"><table><tr>${head.map((cell) => `<th>${cell}</th>`).join('')}</tr>${rows.join('\n')}</table></div>`;
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
