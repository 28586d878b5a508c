/** Draws the growth of one cost as SVG: CPU time of a request above, memory below, as bars that begin at zero. */

export type Pair = readonly [gateway: number, redis: number];

export interface Growth {
  readonly name: string;
  /** The numbers of the points count this. */
  readonly title: string;
  readonly points: readonly { readonly at: number; readonly cpuUs: Pair; readonly mb: Pair }[];
}

/** Small enough for a phone. */
const WIDTH = 360;
const HEIGHT = 368;
const LEFT = 42;
const BAR_WIDTH = 40;
const BAR_HEIGHT = 96;
const LINES = 3;
const STYLE = `<style>
svg { font: 12px system-ui, sans-serif; --back: #ffffff; --text: #1f2328; --line: #d1d9e0; --gateway: #0969da; --redis: #bc4c00; }
@media (prefers-color-scheme: dark) { svg { --back: #0d1117; --text: #e6edf3; --line: #3d444d; --gateway: #58a6ff; --redis: #f0883e; } }
text { fill: var(--text); stroke: var(--back); stroke-width: 3px; paint-order: stroke; }
path { stroke: var(--line); }
</style>`;

export function chartOf({ title, points }: Growth): string {
  const names = points.map(({ at }) => at.toLocaleString('en'));
  const [cpu, memory] = [points.map(({ cpuUs }) => cpuUs), points.map(({ mb }) => mb)];
  const values = points.map(({ cpuUs, mb }, i) => `${names[i]}: ${sumOf(cpuUs)} µs, ${sumOf(mb)} MB.`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title values">
<title id="title">CPU and memory by ${title}</title>
<desc id="values">Gateway + Redis: ${values.join(' ')}</desc>
${STYLE}
${rect('back', 0, 0, WIDTH, HEIGHT)}
<g style="font-size: 15px; font-weight: 600">${text(12, 24, `By ${title}`, 'start')}</g>
${rect('gateway', 12, 36, 10, 10)}${text(27, 45, 'gateway', 'start')}
${rect('redis', 87, 36, 10, 10)}${text(102, 45, '+ Redis', 'start')}
${panelOf('µs of CPU for a request', names, cpu, 72)}
${panelOf('MB of memory', names, memory, 228)}
</svg>
`;
}

function panelOf(unit: string, names: readonly string[], pairs: readonly Pair[], top: number): string {
  const least = Math.max(...pairs.map(([gateway, redis]) => gateway + redis)) / LINES;
  const unitOfStep = 10 ** Math.floor(Math.log10(least)) / 2;
  const step = Math.ceil(least / unitOfStep) * unitOfStep;
  const zero = top + 18 + BAR_HEIGHT;
  const yOf = (value: number): number => zero - (value / step / LINES) * BAR_HEIGHT;
  const parts = [text(12, top, unit, 'start')];
  for (let value = 0; value <= step * LINES; value += step)
    parts.push(
      `<path d="M${LEFT} ${short(yOf(value))}H${WIDTH - 8}"/>`,
      text(LEFT - 6, yOf(value) + 4, value.toLocaleString('en'), 'end'),
    );
  const slot = (WIDTH - LEFT - 8) / pairs.length;
  for (const [i, [gateway, redis]] of pairs.entries()) {
    const middle = LEFT + slot * (i + 0.5);
    const bar = (part: string, from: number, to: number): string =>
      rect(part, middle - BAR_WIDTH / 2, yOf(to), BAR_WIDTH, yOf(from) - yOf(to));
    parts.push(bar('gateway', 0, gateway), bar('redis', gateway, gateway + redis));
    parts.push(text(middle, yOf(gateway + redis) - 4, sumOf([gateway, redis])));
    parts.push(text(middle, zero + 15, names[i] ?? ''));
  }
  return parts.join('\n');
}

function sumOf(pair: Pair): string {
  const digits = (value: number) => ({ maximumFractionDigits: value < 100 ? 1 : 0 });
  return pair.map((value) => value.toLocaleString('en', digits(value))).join(' + ');
}

function text(x: number, y: number, content: string, anchor = 'middle'): string {
  return `<text x="${short(x)}" y="${short(y)}" text-anchor="${anchor}">${content}</text>`;
}

function rect(part: string, ...sides: [x: number, y: number, width: number, height: number]): string {
  const [x, y, width, height] = sides.map(short);
  return `<rect fill="var(--${part})" x="${x}" y="${y}" width="${width}" height="${height}"/>`;
}

function short(value: number): string {
  return String(Number(value.toFixed(1)));
}
