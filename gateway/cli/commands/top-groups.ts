/** Writes the lines of `top` about newcomers and regulars. */
import type { TopSnapshot } from '#gateway/operate/admin/top.ts';

type Groups = Pick<TopSnapshot, 'newcomers'>;
type Rate = (now: number, earlier: number) => number;

export function groupRates({ newcomers: before }: Groups, { newcomers: after }: Groups, rate: Rate) {
  return { newcomers: after === null ? null : newcomersRates(before, after, rate) };
}

function newcomersRates(before: Groups['newcomers'], after: NonNullable<Groups['newcomers']>, rate: Rate) {
  const of = (name: 'regulars' | 'newcomers' | 'denied' | 'shadowDenied' | 'overloaded'): number =>
    rate(after[name], before?.[name] ?? 0);
  return {
    ...after,
    regularsPerSecond: of('regulars'),
    newcomersPerSecond: of('newcomers'),
    deniedPerSecond: of('denied'),
    shadowDeniedPerSecond: of('shadowDenied'),
    overloadedPerSecond: of('overloaded'),
  };
}

/** @returns a line for each group */
export function groupLines({ newcomers: rates }: ReturnType<typeof groupRates>): string[] {
  if (rates === null) return [];
  const { shadowDeniedPerSecond, waiting, overloadedPerSecond, acts, actsFrom } = rates;
  const parts = [
    `newcomers: ${rates.newcomersPerSecond}/s`,
    `${rates.deniedPerSecond}/s denied`,
    ...(shadowDeniedPerSecond > 0 ? [`${shadowDeniedPerSecond}/s would be denied`] : []),
    ...(waiting > 0 ? [`${waiting} waiting`] : []),
    ...(overloadedPerSecond > 0 ? [`${overloadedPerSecond}/s refused by protect`] : []),
  ];
  const when = actsFrom === null ? 'does not act before the store is reached' : `acts from ${actsFrom}`;
  const from = acts ? '' : `; the limit ${when}`;
  return [`regulars: ${rates.regularsPerSecond}/s; ${parts.join(', ')}${from}`];
}
