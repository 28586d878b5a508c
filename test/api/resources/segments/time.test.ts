import t from 'tap';
import { before, readPeriod } from '#api/resources/segments/time.ts';

const at = (text: string): number => Date.parse(text);

t.test('subtracts months of any length', async (t) => {
  const cases: readonly (readonly [string, number, 'days' | 'weeks' | 'months' | 'years', string])[] = [
    ['2026-03-31T10:00:00Z', 1, 'months', '2026-02-28T10:00:00Z'],
    ['2024-03-31T10:00:00Z', 1, 'months', '2024-02-29T10:00:00Z'],
    ['2024-02-29T10:00:00Z', 1, 'years', '2023-02-28T10:00:00Z'],
    ['2026-01-15T00:00:00Z', 13, 'months', '2024-12-15T00:00:00Z'],
    ['2026-01-15T00:00:00Z', 2, 'weeks', '2026-01-01T00:00:00Z'],
    ['2026-01-15T00:00:00Z', 15, 'days', '2025-12-31T00:00:00Z'],
    ['2026-01-15T00:00:00Z', 999, 'years', '1027-01-15T00:00:00Z'],
  ];
  for (const [now, amount, unit, expected] of cases) {
    t.equal(before(at(now), { amount, unit }), at(expected), `${amount} ${unit} before ${now}`);
  }
});

t.test('a date means its whole day, a time means that moment', async (t) => {
  const start = at('2026-01-02T00:00:00Z');
  t.strictSame(readPeriod('2026-01-02'), { start, end: start + 86_400_000 });
  t.strictSame(readPeriod('2026-01-02T00:00Z'), { start, end: start + 1 });
  t.equal(readPeriod('2026-13-02'), null);
});
