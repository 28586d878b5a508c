/** Calendar windows of real time zones: the script, called by gateways with different clocks, and memory agree. */
import { deepEqual, equal } from 'node:assert/strict';
import t from 'tap';
import { type CalendarUnit, calendarOf } from '#gateway/algorithms/calendar.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { testClock } from '#test/support/clock.ts';
import { fc } from '#test/support/fast-check.ts';
import { startScript } from '#test/support/script.ts';
import { chargeOf, memoryLimiter, part, policy, spend } from '#test/support/spend.ts';

const HOUR_MS = 3_600_000;
const LIMIT = 3;

const UNIT_SECONDS: Readonly<Record<CalendarUnit, number>> = {
  day: 86_400,
  week: 604_800,
  month: 2_678_400,
};

function calendarPolicy(name: string, unit: CalendarUnit, timezone: string): Policy {
  const calendar = calendarOf(unit, timezone);
  return policy(name, LIMIT, UNIT_SECONDS[unit], { algorithm: 'calendar-window', calendar });
}

t.test('around midnight: the store’s clock decides in which window a request counts', async (t) => {
  const { askOne } = await startScript(t);
  let run = 0;
  let denied = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...Intl.supportedValuesOf('timeZone')),
      fc.constantFrom<CalendarUnit>('day', 'week', 'month'),
      fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2040, 0) }),
      fc.array(
        fc.record({
          afterMs: fc.oneof(fc.constantFrom(0, 1, 2), fc.nat(HOUR_MS)),
          errorMs: fc.integer({ min: -20 * HOUR_MS, max: 20 * HOUR_MS }),
        }),
        { minLength: 4, maxLength: 14 },
      ),
      async (zone, unit, at, requests) => {
        run++;
        const { end } = calendarOf(unit, zone).windowAt(at);
        const clock = testClock(end - HOUR_MS);
        const memory = memoryLimiter({ clock: clock.now });
        const one = calendarPolicy(`p${run}`, unit, zone);
        const admitted = { before: 0, after: 0 };
        for (const { afterMs, errorMs } of requests) {
          clock.advance(afterMs);
          const now = clock.now();
          const alone = await spend(memory, chargeOf(part(one)));
          if (alone.kind !== 'spent') throw new Error('memory answers');
          const spent = await askOne(now, part(one), now + errorMs);
          const side = now < end ? 'before' : 'after';
          const expected = admitted[side] < LIMIT;
          equal(spent.admitted === 1, expected, 'the script');
          equal(alone.admitted, expected, 'memory');
          const [state, other] = [spent.states[0], alone.spent.states[0]];
          deepEqual(state?.state, other?.state);
          const ends = calendarOf(unit, zone).windowAt(now).end;
          equal(state?.resetMs(1), ends - now);
          equal(side === 'before' ? ends : calendarOf(unit, zone).windowAt(ends - 1).start, end);
          if (expected) admitted[side]++;
          else denied++;
        }
      },
    ),
    { numRuns: 300 },
  );
  t.ok(denied > 300, `${denied} denials`);
});

t.test('a counter expires a second after its window, whatever the gateway’s estimate', async (t) => {
  const { redis, askOne } = await startScript(t);
  const now = Date.parse('2026-03-28T22:00:00Z');
  for (const [unit, end] of [
    ['day', '2026-03-28T23:00:00Z'],
    ['week', '2026-03-29T22:00:00Z'],
    ['month', '2026-03-31T22:00:00Z'],
  ] as const)
    for (const errorMs of [0, 2 * HOUR_MS, -23 * HOUR_MS]) {
      const one = calendarPolicy(`${unit}${errorMs}`, unit, 'Europe/Berlin');
      await askOne(now, part(one), now + errorMs);
      const ttl = await redis.client.pttl(part(one).key);
      const expected = Date.parse(end) - now + 1000;
      t.ok(ttl <= expected && ttl > expected - HOUR_MS / 2, `${unit}: ${ttl} of ${expected}`);
    }
});

t.test('processes with different rules for a zone do not reset the counter', async (t) => {
  const { askOne } = await startScript(t);
  const now = Date.parse('2026-06-30T22:30:00Z');
  const [july, june] = ['Europe/Berlin', 'Europe/London'].map((zone) => calendarPolicy('p', 'month', zone));
  if (july === undefined || june === undefined) throw new Error('there are two');
  let admitted = 0;
  for (let i = 0; i < 10; i++) {
    admitted += (await askOne(now + i, part(july))).admitted;
    admitted += (await askOne(now + i, part(june))).admitted;
  }
  t.equal(admitted, LIMIT, 'the later window applies to both');
  t.equal(
    (await askOne(now + HOUR_MS, part(june))).admitted,
    0,
    'it still applies when the processes agree again',
  );
});
