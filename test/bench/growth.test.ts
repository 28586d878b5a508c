import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { chartOf, type Growth } from '#bench/growth/chart.ts';
import { filesOf } from '#bench/growth/results.ts';
import { projectRoot } from '#test/support/process.ts';

const KEYS: Growth = {
  ...{ name: 'keys', title: 'number of keys' },
  points: [
    { at: 300, cpuUs: [30, 2], mb: [100, 1] },
    { at: 1_000_000, cpuUs: [45, 15], mb: [1500, 300] },
  ],
};

/** Returns the bars of a part: those with the width of a bar. */
function barsOf(svg: string, part: string) {
  const all = svg.matchAll(/fill="var\(--(\w+)\)" x="([\d.]+)" y="([\d.]+)" width="40" height="([\d.]+)"/g);
  const bars = [...all].filter(([, name]) => name === part);
  return bars.map(([, , x, y, height]) => ({ x: Number(x), y: Number(y), height: Number(height) }));
}

/** Returns the contrast of two colours such as #0d1117, as the guidelines for accessible pages define it. */
function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [one, other].map(luminance).sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

t.test('bars begin at zero, and their heights are in proportion', async (t) => {
  const svg = chartOf(KEYS);
  const [gateway, redis] = [barsOf(svg, 'gateway'), barsOf(svg, 'redis')];
  // The axis of CPU time ends at 60 µs, and that of memory at 1,800 MB.
  t.same(
    gateway.map(({ height }) => height),
    [48, 72, 5.3, 80],
  );
  t.same(
    redis.map(({ height }) => Math.round(height * 10)),
    [32, 240, 1, 160],
  );
  const feet = gateway.map(({ y, height }) => y + height);
  t.same(feet, [186, 186, 342, 342], 'on the lines of zero');
  for (const [i, { y, height }] of redis.entries())
    t.equal(Math.round(y + height), Math.round(gateway[i]?.y ?? 0));
  for (const shown of [
    '30 + 2',
    '45 + 15',
    '1,500 + 300',
    '1,000,000',
    '>60<',
    '>1,800<',
    '>µs of CPU for a request<',
  ])
    t.match(svg, shown);
  t.match(svg, '<title id="title">CPU and memory by number of keys</title>');
  t.match(svg, '300: 30 + 2 µs, 100 + 1 MB. 1,000,000: 45 + 15 µs, 1,500 + 300 MB.');
});

t.test('a chart may have a single point', async (t) => {
  const [bar] = barsOf(chartOf({ ...KEYS, points: KEYS.points.slice(0, 1) }), 'gateway');
  t.same(bar, { x: 177, y: 122, height: 64 });
});

t.test('text and bars can be seen in the light and in the dark scheme', async (t) => {
  const schemes = [...chartOf(KEYS).matchAll(/(--back:.*?) \}/g)];
  t.equal(schemes.length, 2);
  for (const [, scheme = ''] of schemes) {
    const colour = (name: string) => new RegExp(`--${name}: (#\\w{6});`).exec(scheme)?.[1] ?? '';
    t.ok(contrast(colour('text'), colour('back')) >= 7);
    for (const bar of ['gateway', 'redis']) t.ok(contrast(colour(bar), colour('back')) >= 4.5, bar);
  }
});

t.test('the page and the pictures show the figures of the file', async (t) => {
  const read = (file: string) => readFileSync(join(projectRoot, file), 'utf8');
  const page = read('docs/performance.md');
  const results = 'bench/results/growth.json';
  // Until the first run, nothing is shown.
  if (!existsSync(join(projectRoot, results))) t.match(page, '<!-- bench:growth -->\n<!-- /bench:growth -->');
  else for (const [file, text] of filesOf(JSON.parse(read(results)), page)) t.equal(read(file), text, file);
});
