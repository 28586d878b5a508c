/** The rungs of the ladder as peers, and their table. The last rung is the gateway. */
import { join } from 'node:path';
import type { Measured } from '#bench/costs/measure.ts';
import type { Scenario } from '#bench/costs/scenarios.ts';
import { withQuartiles } from '#bench/costs/table.ts';
import { FLOODGATE, floodgateIn } from '#bench/peers/floodgate.ts';
import type { Peer } from '#bench/peers/peer.ts';
import { BENCH, ROOT } from '#bench/run/programs.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { spread } from '#bench/run/statistics.ts';

/** In each minute, a limiter first admits as many requests as the limit allows. */
const WRONG_SHARE_MAX = 0.02;

/** The steps of a denied request. Each rung is a server that takes the steps up to its own. */
const TITLES = {
  bare: '`node:net` with a fixed reply',
  parser: 'our parser',
  connection: 'our connection and response',
  match: 'match',
  identify: 'bans, lists, identify',
  decide: 'spend and decide',
  text: 'text and headers',
} as const;

export type Step = keyof typeof TITLES;

const STEPS = Object.keys(TITLES) as readonly Step[];

export function stepsOf(step: Step): ReadonlySet<Step> {
  return new Set(STEPS.slice(0, STEPS.indexOf(step) + 1));
}

export const RUNGS: readonly Peer[] = [
  ...STEPS.map((step): Peer => {
    const program = [join(BENCH, 'ladder', 'rung-server.ts'), step];
    const isBare = !stepsOf(step).has('decide');
    return { ...floodgateIn(ROOT, step, TITLES[step], program), isBare, countsInRedis: !isBare };
  }),
  { ...FLOODGATE, label: 'record, log, metrics: the whole gateway' },
];

export function ladderOf({ name, title }: Scenario, measured: ReadonlyMap<string, Measured>): Table {
  const notes: string[] = [];
  let before: Measured | undefined;
  const rows = [...measured.values()].map((one) => {
    const { label, slices, failure } = one;
    const refused = spread(slices.map(({ refusedShare }) => refusedShare));
    if (failure !== undefined) notes.push(`${label} was not measured: ${failure}`);
    else if (1 - refused.min > WRONG_SHARE_MAX) notes.push(`${label} gave wrong replies`);
    const added = slices.map(({ cpuUs }, i) => cpuUs - (before?.slices[i]?.cpuUs ?? 0));
    const sum = spread(slices.map(({ cpuUs }) => cpuUs));
    const perSecond = spread(slices.map((slice) => slice.perSecond)).median;
    const store = spread(slices.map(({ storeCpuUs }) => storeCpuUs)).median;
    before = one;
    return [
      ...[label, withQuartiles(spread(added), 1), withQuartiles(sum, 1)],
      ...[rounded(sum.min, 1), rounded(store, 1), rounded(perSecond, 0)],
    ];
  });
  const rounds = measured.values().next().value?.slices.length ?? 0;
  const head = ['', 'step, CPU µs', 'sum, CPU µs', 'least sum', 'store µs', 'req/s'];
  return { title: `${title} (${name}, ${rounds} rounds)`, head, rows, notes };
}
