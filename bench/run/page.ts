/** Renders tables as one page that loads nothing: charts are inline SVG. */
import type { Machine } from './machine.ts';
import type { Bar, Table } from './table.ts';

const STYLE = `
:root { color-scheme: light dark; --ours: #0a7d6c; --theirs: #8894a6; --rest: #d08a2e; --ink: light-dark(#1b2330, #e4e8ee);
  --soft: light-dark(#5b6675, #9aa5b4); --line: light-dark(#dde2e8, #323a45); --page: light-dark(#ffffff, #14181d); }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
pre, small { color: var(--soft); white-space: pre-wrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 500; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; } svg .soft { fill: var(--soft); }
`;

const ROW = 26;
const LEFT = 370;
const WIDTH = 920;
const TEXT_WIDTH = 150;
const BAR = 14;

export function page(name: string, machine: Machine, tables: readonly Table[]): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Floodgate ${name} ${escaped(machine.commit)}</title><style>${STYLE}</style></head><body>
<h1>Floodgate ${name}</h1>
<p>Bars: green is Floodgate, grey another program, amber its Redis. They are medians, and a shorter bar is better. The thin
line goes from the lower to the upper quartile.</p>
<pre>${escaped(machine.text)}</pre>
${tables.map(section).join('\n')}
</body></html>
`;
}

function section({ title, head, rows, notes = [], bars = [] }: Table): string {
  const row = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  return `<h2>${escaped(title)}</h2>
${
  bars.length === 0
    ? ''
    : chart(
        rows.map(([label = '']) => label),
        bars,
      )
}
<div class="scroll"><table>${row(head, 'th')}${rows.map((cells) => row(cells, 'td')).join('\n')}</table></div>
${notes.map((note) => `<p><small>${escaped(note)}</small></p>`).join('\n')}`;
}

function chart(labels: readonly string[], bars: readonly Bar[]): string {
  const ends = bars.flatMap(({ parts, quartiles }) => [sum(parts), quartiles[1]]);
  const scale = (WIDTH - LEFT - TEXT_WIDTH) / Math.max(...ends.filter(Number.isFinite), 1e-9);
  const x = (value: number): string => (LEFT + (value || 0) * scale).toFixed(1);
  const rows = bars.map(({ isOurs, parts, quartiles: [low, high], text }, i) => {
    const y = i * ROW + 6;
    const first = isOurs ? 'var(--ours)' : 'var(--theirs)';
    const boxes = parts.map((part, at) => {
      const width = ((part || 0) * scale).toFixed(1);
      const fill = at === 0 ? first : 'var(--rest)';
      return `<rect x="${x(sum(parts.slice(0, at)))}" y="${y}" width="${width}" height="${BAR}" rx="2" fill="${fill}"/>`;
    });
    return `<text x="${LEFT - 8}" y="${y + 11}" text-anchor="end">${escaped(labels[i] ?? '')}</text>${boxes.join('')}
<path d="M${x(low)} ${y + BAR + 2.5}H${x(high)}" stroke="${first}" stroke-width="1.5"/>
<text class="soft" x="${Number(x(sum(parts))) + 8}" y="${y + 11}">${escaped(text)}</text>`;
  });
  return `<svg viewBox="0 0 ${WIDTH} ${bars.length * ROW + 6}" role="img">${rows.join('\n')}</svg>`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + (value || 0), 0);
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
