/** Tells operators about newcomers and regulars. */
import type { Control } from '#gateway/bans/control.ts';
import { dayOf, daysOf } from '#gateway/limiter/history.ts';
import { NEWCOMERS } from '#gateway/policy/groups.ts';
import type { Newcomers } from '#gateway/policy/newcomers.ts';
import { DAY_MS } from '#gateway/policy/regulars.ts';
import { isoTime } from '#shared/clock.ts';
import type { Visitor } from './subject.ts';
import { type Processes, sumOf, totalsBy, valuesOf } from './totals.ts';

const { visitors, denied: denials, actsFrom: acting } = NEWCOMERS.metrics;
const BEHIND = { client: visitors.inside };

/** The totals of each group of clients that policies count, in the replies to operators. */
export function groupTotals(processes: Processes) {
  return { newcomers: newcomersOf(processes) };
}
export type GroupTotals = ReturnType<typeof groupTotals>;

/** Requests on routes of policies with `newcomers`, each counted once; null without any. */
function newcomersOf(processes: Processes) {
  const from = valuesOf(processes, acting.name);
  if (from.length === 0) return null;
  const actsFrom = Math.max(...from.map(({ value }) => value));
  const { [visitors.outside]: regulars = 0, [visitors.inside]: newcomers = 0 } = totalsBy(
    'client',
    processes,
    visitors.name,
  );
  const { enforce: denied = 0, shadow: shadowDenied = 0 } = totalsBy('mode', processes, denials.name);
  return {
    /** Admitted requests of regulars, and of newcomers. */
    regulars,
    newcomers,
    denied,
    /** Admitted requests that a limit would have denied. */
    shadowDenied,
    /** With `protect`: newcomers that wait for a place, and those that were admitted and then refused. */
    waiting: sumOf(valuesOf(processes, 'floodgate_protect_waiting', BEHIND)),
    overloaded: sumOf(valuesOf(processes, 'floodgate_protect_refused_total', { ...BEHIND, mode: 'on' })),
    /** Whether the limit denies anybody, unless it is in shadow mode. */
    acts: actsFrom === 0,
    /** When it begins to act; ISO 8601; null if it acts, or if the store was not reached yet. */
    actsFrom: actsFrom > 0 ? isoTime(actsFrom * 1000) : null,
  };
}

/** Reads whether a client is a regular, and since when. */
export async function regularOf({ client, address }: Visitor, rule: Newcomers, control: Control) {
  const { days: within, keys, never } = rule;
  const { now, provenUntil } = await control.look(client, []);
  const history = await control.historyOf(client);
  const isNever = address !== null && never?.(address) === true;
  const days = history === null ? [] : daysOf(history).filter((day) => day > dayOf(now) - within);
  const isRegular = !isNever && provenUntil !== null && provenUntil > now && days.length + keys.length > 0;
  return {
    /** When it becomes a newcomer again unless it comes back; ISO 8601; null if it is one. */
    until: isRegular ? isoTime(provenUntil) : null,
    /** The days with good replies that count, such as 2026-11-27, in their order. A proven key needs none. */
    days: days.map((day) => isoTime(day * DAY_MS).slice(0, 10)),
  };
}
export type ShownRegular = Awaited<ReturnType<typeof regularOf>>;
