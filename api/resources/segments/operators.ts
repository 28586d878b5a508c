/**
 * The operators of segment filters on one value: an attribute, or the user id. Pure.
 *
 * An operator turns the filter's value into a test, or describes the correct value. A missing or blank value equals
 * nothing, and comparisons with it fail. `notEquals` and `doesNotContain` are the opposites of `equals` and `contains`,
 * so they are true for it. Texts are case-sensitive.
 */
import { isRecord } from '#api/values/schemas.ts';
import type { Millis } from '#shared/clock.ts';
import { before, dayOf, type Period, readPeriod, readTime, type Span, spanUnits } from './time.ts';

/** @param given the contact's value; undefined if it has none */
export type Test = (given: string | undefined, now: Millis) => boolean;

/** Describes the right value of a filter, as the end of a sentence. */
export interface InvalidValue {
  readonly expected: string;
}

type Operator = (value: unknown) => Test | InvalidValue;

const SPAN_AMOUNT_MAX = 999;

export const textOperators = {
  equals: onText((given, text) => given === text),
  notEquals: negated(onText((given, text) => given === text)),
  contains: onText((given, text) => given.includes(text)),
  doesNotContain: negated(onText((given, text) => given.includes(text))),
  startsWith: onText((given, text) => given.startsWith(text)),
  endsWith: onText((given, text) => given.endsWith(text)),
  isSet: () => isSet,
  isNotSet: () => (given) => !isSet(given),
} satisfies Readonly<Record<string, Operator>>;

const equals: Operator = (value) =>
  typeof value === 'number' ? numeric(value, (a, b) => a === b) : textOperators.equals(value);

export const attributeOperators = {
  ...textOperators,
  equals,
  notEquals: negated(equals),
  lessThan: onNumber((a, b) => a < b),
  lessEqual: onNumber((a, b) => a <= b),
  greaterThan: onNumber((a, b) => a > b),
  greaterEqual: onNumber((a, b) => a >= b),
  isOlderThan: onSpan((time, from) => time < from),
  isNewerThan: onSpan((time, from) => time >= from),
  isBefore: onDate((time, { start }) => time < start),
  isAfter: onDate((time, { end }) => time >= end),
  isSameDay: onDate((time, { start }) => dayOf(time) === dayOf(start)),
  isBetween: between,
} satisfies Readonly<Record<string, Operator>>;

function isSet(given: string | undefined): given is string {
  return given !== undefined && given.trim() !== '';
}

function onText(compare: (given: string, text: string) => boolean): Operator {
  return (value) =>
    typeof value === 'string' ? (given) => isSet(given) && compare(given, value) : { expected: 'a string' };
}

function onNumber(compare: (given: number, number: number) => boolean): Operator {
  return (value) => (typeof value === 'number' ? numeric(value, compare) : { expected: 'a number' });
}

/** Compares numbers. Comparisons with an attribute that is not a number fail. */
function numeric(number: number, compare: (given: number, number: number) => boolean): Test {
  return (given) => isSet(given) && Number.isFinite(Number(given)) && compare(Number(given), number);
}

function onSpan(compare: (time: Millis, from: Millis) => boolean): Operator {
  return (value) => {
    const span = readSpan(value);
    if (span === null)
      return { expected: `{amount: 1 to ${SPAN_AMOUNT_MAX}, unit: ${spanUnits.join(', ')}}` };
    return onTime((time, now) => compare(time, before(now, span)));
  };
}

function onDate(compare: (time: Millis, period: Period) => boolean): Operator {
  return (value) => {
    const period = typeof value === 'string' ? readPeriod(value) : null;
    return period === null ? { expected: 'an ISO 8601 date' } : onTime((time) => compare(time, period));
  };
}

/** Compares times. Comparisons with an attribute that is not a date fail. */
function onTime(compare: (time: Millis, now: Millis) => boolean): Test {
  return (given, now) => {
    const time = isSet(given) ? readTime(given) : null;
    return time !== null && compare(time, now);
  };
}

/** Compares a value with a range. Both ends are included. An end without a time includes its whole day. */
function between(value: unknown): Test | InvalidValue {
  const expected = { expected: '[from, to], two numbers or two ISO 8601 dates' };
  if (!Array.isArray(value) || value.length !== 2) return expected;
  const [from, to]: readonly unknown[] = value;
  if (typeof from === 'number' && typeof to === 'number') {
    return (given) => isSet(given) && Number(given) >= from && Number(given) <= to;
  }
  if (typeof from !== 'string' || typeof to !== 'string') return expected;
  const first = readPeriod(from);
  const last = readPeriod(to);
  if (first === null || last === null) return expected;
  return onTime((time) => time >= first.start && time < last.end);
}

function negated(operator: Operator): Operator {
  return (value) => {
    const test = operator(value);
    return typeof test === 'function' ? (given, now) => !test(given, now) : test;
  };
}

/** @returns null if the value is not a time span */
export function readSpan(value: unknown): Span | null {
  if (!isRecord(value)) return null;
  const { amount } = value;
  const unit = spanUnits.find((known) => known === value.unit);
  if (typeof amount !== 'number' || unit === undefined) return null;
  const isAmount = Number.isInteger(amount) && amount >= 1 && amount <= SPAN_AMOUNT_MAX;
  return isAmount ? { amount, unit } : null;
}
