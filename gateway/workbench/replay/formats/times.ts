/** Reads the times of logs. A proxy can be configured to write numbers of several units, and texts of several forms. */
import type { Millis } from '#shared/clock.ts';

const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';
/** Matches a time such as `22/Nov/2026:06:30:12 +0000`. */
const COMMON = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/;
const ISO = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*(Z|[+-]\d\d):?(\d\d)?$/;
/** A time of Caddy's `wall` formats, which is UTC unless somebody asks for local time. */
const WALL = /^(\d{4})\/(\d\d)\/(\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*$/;
const NUMBER = /^\d+(?:\.\d+)?$/;

/** The year 1973 in seconds. Smaller numbers are not times of a log. */
const SECONDS_MIN = 1e8;
/** Each unit is a thousandth of the one before. Its numbers are below those of the next for any year until 5138. */
const UNITS_MS: readonly Millis[] = [1000, 1, 1e-3, 1e-6];

/**
 * @param value a number of seconds, milliseconds, microseconds or nanoseconds, also as a text; ISO 8601; or another form
 * @returns milliseconds since the epoch; NaN if it is no time
 */
export function timeOf(value: unknown): Millis {
  if (typeof value === 'number') return numericTime(value);
  if (typeof value !== 'string') return Number.NaN;
  const [, iso, zone, minutes] = ISO.exec(value) ?? [];
  if (iso !== undefined) return Date.parse(`${iso}${zone === 'Z' ? 'Z' : `${zone}:${minutes ?? '00'}`}`);
  if (NUMBER.test(value)) return numericTime(Number(value));
  const [, year, month, day, time] = WALL.exec(value) ?? [];
  return year === undefined ? commonTime(value) : Date.parse(`${year}-${month}-${day}T${time}Z`);
}

function numericTime(value: number): Millis {
  for (const [i, unitMs] of UNITS_MS.entries()) {
    const least = SECONDS_MIN * 1000 ** i;
    if (value >= least && value < least * 1000) return Math.floor(value * unitMs);
  }
  return Number.NaN;
}

/** Reads the time of `common` and `combined`. @returns NaN if there is no valid time */
export function commonTime(text: string): Millis {
  const [, day, month = '', year, hour, minute, second, sign, zoneHours, zoneMinutes] =
    COMMON.exec(text) ?? [];
  const monthAt = MONTHS.indexOf(month) / 3;
  if (year === undefined || !Number.isInteger(monthAt)) return Number.NaN;
  const local = Date.UTC(Number(year), monthAt, Number(day), Number(hour), Number(minute), Number(second));
  const zoneMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000;
  return sign === '-' ? local + zoneMs : local - zoneMs;
}
