/** Writes the tables of costs into the pages. They come from one run, whose figures are kept in a file. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PEERS } from '#bench/peers/all.ts';
import { ROOT } from '#bench/run/programs.ts';
import { rounded } from '#bench/run/report.ts';
import { spread } from '#bench/run/statistics.ts';
import type { Measured, Slice } from './measure.ts';
import { SCENARIOS } from './scenarios.ts';

/** The results of one run. In the file, a figure that was not measured is null. */
export interface Costs {
  /** In ISO format. */
  readonly date: string;
  /** With the commit, and the versions of all programs. */
  readonly machine: string;
  readonly rounds: number;
  /** Length of a visit. */
  readonly seconds: number;
  /** By name of the scenario, and then of the peer. */
  readonly scenarios: Readonly<Record<string, Readonly<Record<string, Measured>>>>;
}

interface Row {
  readonly scenario: string;
  readonly title: string;
  /** A cell shows each of them, or their sum. */
  readonly measures: readonly (keyof Slice)[];
  readonly digits: number;
}

export const COSTS_FILE = 'bench/results/costs.json';
const SECTION = /(?<=<!-- bench:costs -->\n).*?(?=<!-- \/bench:costs -->)/gs;
const CPU = { measures: ['cpuUs', 'storeCpuUs'], digits: 1 } as const;
const COSTS: readonly Row[] = [
  ...SCENARIOS.map(({ name, title }) => ({ scenario: name, title, ...CPU })),
  { scenario: 'quiet', title: 'latency in ms at 1,000 requests a second', measures: ['p50Ms'], digits: 2 },
  { scenario: 'keys-100k', title: 'memory in MB with 100,000 keys', measures: ['rssMb'], digits: 0 },
];
const BRIEF = ['hot', 'keys-100k', 'post-1k', 'denied'];
const BRIEF_PEERS = ['floodgate', 'nginx-lua', 'fastify-rate-limit', 'haproxy', 'caddy-plain'];

/** Returns all files that show the results, by path. @throws Error if a page has no place for them, or several */
export function filesOf(costs: Costs): ReadonlyMap<string, string> {
  const each = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(4)) : value;
  const inLines = JSON.stringify(costs, each, 1);
  const text = inLines.replaceAll(/\{\s+"perSecond[^}]*\}/g, (slice) => slice.replaceAll(/\s+/g, ' '));
  const { date, machine, rounds, seconds, scenarios }: Costs = JSON.parse(text);
  const day = new Date(date).toLocaleDateString('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
  const run = `Measured on ${day}, medians of ${rounds} rounds of ${seconds} s: ${machine}.`;
  const brief = COSTS.slice(0, SCENARIOS.length).filter(({ scenario }) => BRIEF.includes(scenario));
  return new Map([
    [COSTS_FILE, `${text}\n`],
    filled('README.md', `${tableOf(scenarios, brief, BRIEF_PEERS)}\n\nMeasured on ${day}.`),
    filled('docs/performance.md', `${tableOf(scenarios, COSTS)}\n\n${run}`),
  ]);
}

export function publish(costs: Costs): void {
  for (const [file, text] of filesOf(costs)) writeFileSync(join(ROOT, file), text);
}

function filled(file: string, text: string): [file: string, text: string] {
  const page = readFileSync(join(ROOT, file), 'utf8');
  if (page.match(SECTION)?.length !== 1) throw new Error(`${file} needs one place for the costs`);
  return [file, page.replace(SECTION, () => `\n${text}\n\n`)];
}

/** @param brief names of the peers, whose cells then are sums. Default: all peers */
function tableOf(scenarios: Costs['scenarios'], rows: readonly Row[], brief?: readonly string[]): string {
  const isMeasured = (name: string): boolean => Object.values(scenarios).some((peers) => name in peers);
  const peers = PEERS.filter(({ name }) => (brief?.includes(name) ?? true) && isMeasured(name));
  const lines = rows.flatMap((row) => {
    const { [row.scenario]: measured = {} } = scenarios;
    const cells = peers.map(({ name }) => cellOf(row, measured[name], brief !== undefined));
    return cells.some((cell) => cell !== '') ? [[row.title, ...cells, ratioOf(row, measured)]] : [];
  });
  const head = ['', ...peers.map(({ label }) => label), 'Floodgate to NGINX + Lua'];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`.replaceAll('  ', ' ');
  return [line(head), `|${'---|'.repeat(head.length)}`, ...lines.map(line)].join('\n');
}

function cellOf({ measures, digits }: Row, measured: Measured | undefined, isSum: boolean): string {
  return (isSum ? [measures] : measures.map((one) => [one]))
    .map((ones) => spread(sumsOf(measured, ones)).median)
    .filter((value) => value >= 0.5 * 10 ** -digits)
    .map((value) => rounded(value, isSum || value >= 100 ? 0 : digits))
    .join(' + ');
}

/** Compares Floodgate with NGINX and Lua in the same round, because a disturbance of the machine affects both. */
function ratioOf({ measures }: Row, measured: Readonly<Record<string, Measured>>): string {
  const theirs = sumsOf(measured['nginx-lua'], measures);
  const ratios = sumsOf(measured.floodgate, measures).map((sum, i) => sum / (theirs[i] ?? Number.NaN));
  return rounded(spread(ratios).median, 2).replace('-', '');
}

/** Returns a figure for each round. */
function sumsOf(measured: Measured | undefined, measures: Row['measures']): readonly number[] {
  if (measured === undefined || measured.failure !== undefined) return [];
  return measured.slices.map((slice) => measures.reduce((sum, measure) => sum + slice[measure], 0));
}
