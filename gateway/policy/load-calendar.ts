/** Reads `timezone`, and makes the calendars of a policy file. */
import { type Calendar, type CalendarUnit, calendarOf, isUnit } from '#gateway/algorithms/calendar.ts';
import type { Report } from './problems.ts';
import type { PolicyFile } from './schema.ts';

const DEFAULT_TIMEZONE = 'UTC';

/** @returns the calendar of a window in the file; null for a window of fixed length */
export function calendarsOf(
  { timezone }: Pick<PolicyFile, 'timezone'>,
  report: Report,
): (window: string) => Calendar | null {
  const isKnown = timezone === undefined || isTimezone(timezone);
  if (!isKnown)
    report(
      ['timezone'],
      `${timezone} is not a time zone that this version of Node knows`,
      `write ${zoneOfCity(timezone) ?? 'a name of the IANA database, such as Europe/Berlin or UTC'}`,
    );
  const zone = isKnown ? (timezone ?? DEFAULT_TIMEZONE) : DEFAULT_TIMEZONE;
  const calendars = new Map<CalendarUnit, Calendar>();
  return (window) => {
    if (!isUnit(window)) return null;
    const calendar = calendars.get(window) ?? calendarOf(window, zone);
    calendars.set(window, calendar);
    return calendar;
  };
}

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Finds a similar time zone, such as Europe/Berlin for Germany/Berlin. */
function zoneOfCity(written: string): string | undefined {
  const cityOf = (name: string): string | undefined => name.split('/').at(-1)?.toLowerCase();
  return Intl.supportedValuesOf('timeZone').find((name) => cityOf(name) === cityOf(written));
}
