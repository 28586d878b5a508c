/** The key `timezone`, and the calendars of a policy file. */
import { type Calendar, type CalendarUnit, calendarOf, isUnit } from '#gateway/algorithms/calendar.ts';
import { type FilePlace, fileKey } from './key.ts';

const DEFAULT_TIMEZONE = 'UTC';

export const timezone = fileKey({
  schema: {
    type: 'string',
    pattern: '^[A-Za-z][A-Za-z0-9_+/-]{0,63}$',
    description: 'the time zone of calendar windows, such as Europe/Berlin; UTC unless given',
  },
  default: DEFAULT_TIMEZONE,
  see: '#calendar-windows',
  read: calendarsOf,
});

/** @returns the calendar of a window in the file; null for a window of fixed length */
function calendarsOf(name: string, { report }: FilePlace): (window: string) => Calendar | null {
  // Looking up the default would load the tables of ICU into every process, which takes 8 MB.
  const isKnown = name === DEFAULT_TIMEZONE || isTimezone(name);
  if (!isKnown)
    report(
      [],
      `${name} is not a time zone that this version of Node knows`,
      'write a name of the IANA database, such as Europe/Berlin or UTC',
    );
  const zone = isKnown ? name : DEFAULT_TIMEZONE;
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
