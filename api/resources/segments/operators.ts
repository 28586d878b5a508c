/**
 * The operators of segment filters on one value of a contact, such as an attribute. Pure.
 *
 * A missing or blank value equals nothing, and comparisons with it fail. `notEquals` and `doesNotContain` are the
 * opposites of `equals` and `contains`, so they are true for it. Texts are case-sensitive, times are UTC.
 */
import { isRecord } from '#api/values/schemas.ts';
import { readTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

/**
 * @param given the contact's value; undefined if it has none
 * @param value what the filter compares it with
 * @returns null if the operator cannot compare anything with this value
 */
type Test = (given: string | undefined, value: unknown, now: Millis) => boolean | null;

const DAY: Millis = 86_400_000;
const SPAN_AMOUNT_MAX = 999;
const spanUnits = ['days', 'weeks', 'months', 'years'] as const;

const equalsText = onText((given, text) => given === text);
const equalsNumber = onNumber((given, number) => given === number);
const equals: Test = (given, value, now) =>
  (typeof value === 'number' ? equalsNumber : equalsText)(given, value, now);
const contains = onText((given, text) => given.includes(text));
const isBefore = onTime((time, { start }) => time < start);
const isWithin = onTime((time, { start, end }) => time >= start && time < end);

export const operators: ReadonlyMap<unknown, Test> = new Map<unknown, Test>([
  ['equals', equals],
  ['notEquals', oppositeOf(equals)],
  ['contains', contains],
  ['doesNotContain', oppositeOf(contains)],
  ['startsWith', onText((given, text) => given.startsWith(text))],
  ['endsWith', onText((given, text) => given.endsWith(text))],
  ['isSet', isSet],
  ['isNotSet', (given) => !isSet(given)],
  ['lessThan', onNumber((given, number) => given < number)],
  ['lessEqual', onNumber((given, number) => given <= number)],
  ['greaterThan', onNumber((given, number) => given > number)],
  ['greaterEqual', onNumber((given, number) => given >= number)],
  ['isOlderThan', isBefore],
  ['isNewerThan', onTime((time, { start }) => time >= start)],
  ['isBefore', isBefore],
  ['isAfter', onTime((time, { end }) => time >= end)],
  ['isSameDay', onTime((time, { start }) => Math.floor(time / DAY) === Math.floor(start / DAY))],
  ['isBetween', isBetween],
]);

function isSet(given: string | undefined): given is string {
  return given !== undefined && given.trim() !== '';
}

function onText(compare: (given: string, text: string) => boolean): Test {
  return (given, value) => (typeof value === 'string' ? isSet(given) && compare(given, value) : null);
}

/** Comparisons with an attribute that is not a number fail. */
function onNumber(compare: (given: number, number: number) => boolean): Test {
  return (given, value) => {
    if (typeof value !== 'number') return null;
    return isSet(given) && Number.isFinite(Number(given)) && compare(Number(given), value);
  };
}

/** Comparisons with an attribute that is not a time fail. */
function onTime(compare: (time: Millis, period: Period) => boolean): Test {
  return (given, value, now) => {
    const period = periodOf(value, now);
    if (period === null) return null;
    const time = isSet(given) ? timeOf(given) : null;
    return time !== null && compare(time, period);
  };
}

/** Compares with two numbers or two times. Both ends are included. */
function isBetween(given: string | undefined, value: unknown, now: Millis): boolean | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [from, to]: readonly unknown[] = value;
  if (typeof from !== 'number' || typeof to !== 'number') return isWithin(given, value, now);
  return isSet(given) && Number(given) >= from && Number(given) <= to;
}

function oppositeOf(test: Test): Test {
  return (given, value, now) => {
    const holds = test(given, value, now);
    return holds === null ? null : !holds;
  };
}

/** A period from its first moment to the first moment after it. */
interface Period {
  readonly start: Millis;
  readonly end: Millis;
}

/**
 * @param value a time, which is a single moment; a date, which is a whole day; a span before now; or `[from, to]` of them
 * @returns null for anything else
 */
function periodOf(value: unknown, now: Millis): Period | null {
  if (Array.isArray(value)) {
    const [from, to] = value.slice(0, 2).map((one: unknown) => periodOf(one, now));
    return from && to ? { start: from.start, end: to.end } : null;
  }
  const start = typeof value === 'string' ? timeOf(value) : spanBefore(now, value);
  if (start === null) return null;
  return { start, end: typeof value === 'string' && !value.includes('T') ? start + DAY : start + 1 };
}

/** @returns null if the text is not an ISO 8601 date; a date without a time is its first moment */
function timeOf(text: string): Millis | null {
  const timestamp = readTimestamp(text);
  return timestamp === null ? null : Date.parse(timestamp);
}

/**
 * Returns the time that is a span before now. A month before March 31 is the last day of February.
 *
 * @param span `{amount, unit}` @returns null if it is something else
 */
export function spanBefore(now: Millis, span: unknown): Millis | null {
  if (!isRecord(span)) return null;
  const { amount } = span;
  const unit = spanUnits.find((known) => known === span.unit);
  if (unit === undefined || typeof amount !== 'number' || !Number.isInteger(amount)) return null;
  if (amount < 1 || amount > SPAN_AMOUNT_MAX) return null;
  const date = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO('UTC');
  return date.subtract({ [unit]: amount }).epochMilliseconds;
}
