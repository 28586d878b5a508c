/** Formats of single answers, each decided in linear time. Pure. */

import { isDay } from '#api/timestamps.ts';

/** As much of an answer as such a format can be long. */
const LENGTH_MAX = 64;
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$/;
/** Digits with what people put between them. */
const PHONE_NUMBER = /^\+?[\d\s()./-]+$/;
const PHONE_DIGITS_MIN = 2;
const DATE = /^(\d{4}-\d{2}-\d{2})(T[\d:.]+(Z|[+-]\d{2}:?\d{2})?)?$/;

export function isNumber(text: string): boolean {
  return text.length <= LENGTH_MAX && NUMBER.test(text) && Number.isFinite(Number(text));
}

export function isPhoneNumber(text: string): boolean {
  if (text.length > LENGTH_MAX || !PHONE_NUMBER.test(text)) return false;
  return text.replaceAll(/\D/g, '').length >= PHONE_DIGITS_MIN;
}

/** A day of the calendar, `YYYY-MM-DD`; a time may follow. */
export function isDate(text: string): boolean {
  if (text.length > LENGTH_MAX) return false;
  const [, day, time] = DATE.exec(text) ?? [];
  return day !== undefined && isDay(day) && (time === undefined || !Number.isNaN(Date.parse(text)));
}
