/** Tests that calendar windows have no gaps, and the days on which clocks change. */
import { equal, ok } from 'node:assert/strict';
import t from 'tap';
import { type CalendarUnit, calendarOf } from '#gateway/algorithms/calendar.ts';
import { fc } from '#test/support/fast-check.ts';
import { rounds } from '#test/support/seed.ts';

const UNITS: readonly CalendarUnit[] = ['day', 'week', 'month'];
const HOUR_MS = 3_600_000;

/** The local date, as Node's formats tell it. */
const dateAt = (timezone: string, at: number): string =>
  new Intl.DateTimeFormat('en-CA', { timeZone: timezone, dateStyle: 'short' }).format(at);

t.test('every zone, many instants: windows are those of the local calendar, without gaps', async (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom(...Intl.supportedValuesOf('timeZone')),
      fc.constantFrom(...UNITS),
      fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2060, 0) }),
      (zone, unit, at) => {
        const calendar = calendarOf(unit, zone);
        const { number, start, end } = calendar.windowAt(at);
        ok(start <= at && at < end, 'the instant is in its window');
        equal(calendar.windowAt(start).start, start);
        equal(calendar.windowAt(end - 1).number, number);
        const after = calendar.windowAt(end);
        equal(after.start, end, 'the next window begins where this one ends');
        const before = calendar.windowAt(start - 1);
        equal(before.end, start, 'and the one before ends where this one begins');
        ok(before.number < number && number < after.number);
        equal(calendarOf(unit, zone).windowAt(at).number, number, 'whatever was asked before');
        ok(dateAt(zone, start - 1) < dateAt(zone, start), 'it begins with a day');
        if (unit === 'month') equal(dateAt(zone, start).slice(8), '01');
      },
    ),
    { numRuns: rounds(3000) },
  );
  t.pass();
});

t.test('days on which clocks change have their real length', async (t) => {
  const hoursOf = (zone: string, noon: string): number => {
    const { start, end } = calendarOf('day', zone).windowAt(Date.parse(noon));
    return (end - start) / HOUR_MS;
  };
  t.equal(hoursOf('Europe/Berlin', '2026-03-29T10:00:00Z'), 23);
  t.equal(hoursOf('Europe/Berlin', '2026-10-25T11:00:00Z'), 25);
  t.equal(hoursOf('Australia/Lord_Howe', '2026-10-04T01:00:00Z'), 23.5, 'the clock moves by half an hour');
  t.equal(hoursOf('America/Havana', '2026-11-01T17:00:00Z'), 25, 'midnight comes twice');
  const startOf = (zone: string, noon: string): string =>
    new Date(calendarOf('day', zone).windowAt(Date.parse(noon)).start).toISOString();
  t.equal(startOf('America/Sao_Paulo', '2018-11-04T15:00:00Z'), '2018-11-04T03:00:00.000Z', 'no midnight');
  t.equal(startOf('Africa/Cairo', '2026-04-24T10:00:00Z'), '2026-04-23T22:00:00.000Z', 'no midnight');
  t.equal(startOf('Asia/Beirut', '2026-03-29T10:00:00Z'), '2026-03-28T22:00:00.000Z', 'no midnight');
  t.equal(startOf('Asia/Kolkata', '2026-03-29T10:00:00Z'), '2026-03-28T18:30:00.000Z');
  t.equal(startOf('America/St_Johns', '2010-11-07T02:45:00Z'), '2010-11-07T02:30:00.000Z', 'two midnights');
  const samoa = calendarOf('day', 'Pacific/Apia');
  const last = samoa.windowAt(Date.parse('2011-12-30T09:59:59Z'));
  t.equal(new Date(last.end).toISOString(), '2011-12-30T10:00:00.000Z', 'Thursday the 29th ends');
  t.equal(samoa.windowAt(last.end).start, last.end, 'Saturday the 31st follows');
});

t.test('weeks begin on Monday, months on the first', async (t) => {
  const startOf = (unit: CalendarUnit, at: string): string =>
    new Date(calendarOf(unit, 'UTC').windowAt(Date.parse(at)).start).toISOString();
  t.equal(startOf('week', '2026-11-22T23:59:59.999Z'), '2026-11-16T00:00:00.000Z', 'a Sunday');
  t.equal(startOf('week', '2026-11-23T00:00:00Z'), '2026-11-23T00:00:00.000Z', 'a Monday');
  t.equal(startOf('week', '1970-01-01T00:00:00Z'), '1969-12-29T00:00:00.000Z');
  const february = calendarOf('month', 'UTC').windowAt(Date.parse('2028-02-29T12:00:00Z'));
  t.equal((february.end - february.start) / 24 / HOUR_MS, 29, 'February of a leap year');
  t.equal(startOf('month', '1969-12-31T00:00:00Z'), '1969-12-01T00:00:00.000Z');
  const end = calendarOf('month', 'Europe/Berlin').windowAt(8.64e15);
  t.ok(Number.isFinite(end.end), 'the last representable date');
});
