/** The figures of a run, in a file from which the pictures and a part of a page are made. */
import type { Measured, Slice } from '#bench/costs/measure.ts';
import { spread } from '#bench/run/statistics.ts';
import { chartOf, type Growth } from './chart.ts';

export interface Results {
  /** Such as 2026-11-29. */
  readonly date: string;
  readonly machine: string;
  readonly rounds: number;
  readonly growths: readonly Growth[];
}

export const PAGE = 'docs/performance.md';
const MARKED = /(?<=<!-- bench:growth -->\n).*(?=<!-- \/bench:growth -->)/s;

/** Returns the figures of all points: medians of all rounds. */
export function pointsOf(measured: ReadonlyMap<string, Measured>): Growth['points'] {
  return [...measured].map(([at, { slices }]) => {
    const median = (measure: keyof Slice): number =>
      Number(spread(slices.map((slice) => slice[measure])).median.toFixed(1));
    const cpuUs = [median('cpuUs'), median('storeCpuUs')] as const;
    return { at: Number(at), cpuUs, mb: [median('rssMb'), median('storeMb')] };
  });
}

/** Returns all files that show the results, by path. @param page the text of `PAGE` */
export function filesOf(results: Results, page: string): ReadonlyMap<string, string> {
  const { date, machine, rounds, growths } = results;
  const shown = growths.map(({ name, title }) => `![By ${title}](pictures/growth-${name}.svg)`);
  // The table of costs on the same page has the versions of all programs.
  const processor = machine.split(', ').find((part) => part.includes(' × '));
  const part = `${date}, ${processor}, medians of ${rounds} rounds:\n\n${shown.join('\n')}\n`;
  return new Map([
    ['bench/results/growth.json', `${JSON.stringify(results, null, 1)}\n`],
    ...growths.map((one): [string, string] => [`docs/pictures/growth-${one.name}.svg`, chartOf(one)]),
    [PAGE, page.replace(MARKED, () => part)],
  ]);
}
