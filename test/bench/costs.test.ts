/** The tables of costs in the pages are what the file of the last run gives. UPDATE=1 writes them again. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Measured } from '#bench/costs/measure.ts';
import { COSTS_FILE, type Costs, filesOf, publish } from '#bench/costs/publish.ts';
import { projectRoot } from '#test/support/process.ts';

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
const pages = ['README.md', 'docs/performance.md'];

/** @param rounds CPU time of the server and of its Redis, in µs */
function measured(label: string, rounds: readonly (readonly [number, number])[]): Measured {
  const rest = {
    perSecond: 1,
    refusedShare: 0,
    storeCommands: 1,
    p99Ms: 9,
    rssMb: 1234.4,
    storeMb: 2,
    errors: 0,
  };
  const slices = rounds.map(([cpuUs, storeCpuUs]) => ({
    ...{ ...rest, cpuUs, storeCpuUs, totalCpuUs: cpuUs + storeCpuUs, p50Ms: 0.456789 },
  }));
  return { label, slices };
}

const ours = [
  [31.04, 2],
  [40, 6],
  [30, 1],
] as const;
const theirs = [
  [30, 10],
  [38, 8],
  [20, 11],
] as const;
const hot = {
  floodgate: measured('Floodgate', ours),
  'nginx-lua': measured('NGINX + Lua + Redis', theirs),
  haproxy: { ...measured('HAProxy stick tables', [[5, 0]]), failure: 'it refused requests' },
  'caddy-plain': measured('Caddy, no limit', [[1212.3, 0]]),
};
const run: Costs = {
  ...{ date: '2026-11-29T22:10:00.000Z', machine: '2 × CPU', rounds: 3, seconds: 2 },
  scenarios: { hot, quiet: { floodgate: measured('Floodgate', [[200, 30]]) } },
};

function sectionOf(page: string): string {
  return page.split('<!-- bench:costs -->')[1]?.split('<!-- /bench:costs -->')[0]?.trim() ?? '';
}

t.test('the pages show what the file of the last run gives', async (t) => {
  const costs: Costs = JSON.parse(read(COSTS_FILE));
  if (process.env.UPDATE === '1') publish(costs);
  const files = filesOf(costs);
  t.strictSame([...files.keys()], [COSTS_FILE, ...pages]);
  for (const [file, text] of files) t.equal(read(file), text, `${file}: npm run bench -- --publish`);
});

t.test('a page has one place for the tables', async (t) => {
  for (const page of pages)
    for (const mark of ['<!-- bench:costs -->', '<!-- /bench:costs -->'])
      t.equal(read(page).split(mark).length, 2, `${page}: ${mark}`);
});

t.test('a cell is a median, and a ratio the median of those of each round', async (t) => {
  const files = filesOf(run);
  t.equal(
    sectionOf(files.get('docs/performance.md') ?? ''),
    `| | Floodgate | NGINX + Lua + Redis | HAProxy stick tables | Caddy, no limit | Floodgate to NGINX + Lua |
|---|---|---|---|---|---|
| allowed, one hot key | 31.0 + 2.0 | 30.0 + 10.0 | | 1,212 | 1.00 |
| allowed, about 1,000 requests a second | 200 + 30.0 | | | | |
| latency in ms at 1,000 requests a second | 0.46 | | | | |

Measured on 29 November 2026, medians of 3 rounds of 2 s: 2 × CPU.`,
  );
  t.equal(
    sectionOf(files.get('README.md') ?? ''),
    `| | Floodgate | NGINX + Lua + Redis | HAProxy stick tables | Caddy, no limit | Floodgate to NGINX + Lua |
|---|---|---|---|---|---|
| allowed, one hot key | 33 | 40 | | 1,212 | 1.00 |

Measured on 29 November 2026.`,
  );
  t.strictSame(filesOf(JSON.parse(files.get(COSTS_FILE) ?? '')), files, 'the file keeps what the pages need');
});
