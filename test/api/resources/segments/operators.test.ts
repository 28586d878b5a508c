import t from 'tap';
import { attributeOperators, textOperators } from '#api/resources/segments/operators.ts';

const now = Date.parse('2026-03-31T12:00:00Z');
const day = (days: number): string => new Date(now - days * 86_400_000).toISOString();

/**
 * Each row has an operator, the value of the filter, attributes for which it is true, and attributes for which it is
 * false.
 */
const rows: readonly (readonly [keyof typeof attributeOperators, unknown, unknown[], unknown[]])[] = [
  ['equals', 'pro', ['pro'], ['Pro', 'prof', '', undefined]],
  ['equals', 5, ['5', '5.0', ' 5 '], ['6', 'five', '', undefined]],
  ['equals', 0, ['0', '-0'], ['', ' ', undefined]],
  ['notEquals', 'pro', ['free', '', undefined], ['pro']],
  ['notEquals', 5, ['6', 'x', undefined], ['5']],
  ['contains', 'ro', ['pro', 'ro'], ['r o', 'RO', undefined]],
  ['doesNotContain', 'ro', ['free', undefined], ['pro']],
  ['startsWith', 'p', ['pro', 'p'], ['xp', undefined]],
  ['endsWith', 'o', ['pro', 'o'], ['ox', undefined]],
  ['isSet', '', ['x', '0', 'false'], ['', ' ', undefined]],
  ['isNotSet', null, ['', undefined], ['x']],
  ['lessThan', 5, ['4.9', '-1'], ['5', 'x', '', undefined]],
  ['lessEqual', 5, ['5'], ['5.1', undefined]],
  ['greaterThan', 5, ['5.1', '1e3'], ['5', 'Infinity', 'NaN', undefined]],
  ['greaterEqual', -5, ['-5', '0'], ['-5.1', undefined]],
  [
    'isOlderThan',
    { amount: 1, unit: 'days' },
    [day(1.1), '2001-01-01'],
    [day(1), day(0), day(-5), 'x', undefined],
  ],
  [
    'isOlderThan',
    { amount: 1, unit: 'months' },
    ['2026-02-28T11:59:59Z'],
    ['2026-02-28T12:00:00Z', '2026-03-01'],
  ],
  ['isNewerThan', { amount: 2, unit: 'weeks' }, [day(14), day(0), day(-1)], [day(14.1), '', undefined]],
  ['isNewerThan', { amount: 1, unit: 'years' }, ['2025-03-31T12:00:00Z'], ['2025-03-31T11:59:59Z']],
  ['isBefore', '2026-01-10', ['2026-01-09T23:59:59.999Z'], ['2026-01-10', 'x', undefined]],
  ['isAfter', '2026-01-10', ['2026-01-11'], ['2026-01-10T23:59:59Z', '2026-01-09']],
  ['isAfter', '2026-01-10T12:00:00Z', ['2026-01-10T12:00:00.001Z'], ['2026-01-10T12:00:00Z']],
  [
    'isSameDay',
    '2026-01-10',
    ['2026-01-10', '2026-01-10T23:59:59Z', '2026-01-11T00:30:00+01:00'],
    ['2026-01-11', 'x'],
  ],
  [
    'isBetween',
    ['2026-01-10', '2026-01-12'],
    ['2026-01-10', '2026-01-12T23:59:59Z'],
    ['2026-01-13', '2026-01-09', 'x'],
  ],
  ['isBetween', [1, 5], ['1', '5', '2.5'], ['0.9', '5.1', '', 'x', undefined]],
];

for (const [operator, value, held, failed] of rows) {
  t.test(`${operator} ${JSON.stringify(value)}`, async (t) => {
    const test = attributeOperators[operator](value);
    if (typeof test !== 'function') return t.fail(test.expected);
    for (const given of held) t.equal(test(given as string | undefined, now), true, `holds for ${given}`);
    for (const given of failed) t.equal(test(given as string | undefined, now), false, `not for ${given}`);
  });
}

t.test('names values that do not fit their operator', async (t) => {
  const unfit: readonly (readonly [keyof typeof attributeOperators, unknown])[] = [
    ['contains', 5],
    ['equals', null],
    ['notEquals', {}],
    ['lessThan', '5'],
    ['isOlderThan', 5],
    ['isOlderThan', { amount: 0, unit: 'days' }],
    ['isOlderThan', { amount: 1.5, unit: 'days' }],
    ['isOlderThan', { amount: 1_000, unit: 'days' }],
    ['isNewerThan', { amount: 1, unit: 'hours' }],
    ['isBefore', 'yesterday'],
    ['isAfter', 5],
    ['isBetween', ['2026-01-01']],
    ['isBetween', ['2026-01-01', 5]],
    ['isBetween', ['2026-01-01', 'x']],
    ['isBetween', 'x'],
  ];
  for (const [operator, value] of unfit) {
    t.match(
      attributeOperators[operator](value),
      { expected: String },
      `${operator} ${JSON.stringify(value)}`,
    );
  }
});

t.test('the operators are the documented ones', async (t) => {
  t.strictSame(Object.keys(attributeOperators).sort(), [
    ...[
      'contains',
      'doesNotContain',
      'endsWith',
      'equals',
      'greaterEqual',
      'greaterThan',
      'isAfter',
      'isBefore',
    ],
    ...['isBetween', 'isNewerThan', 'isNotSet', 'isOlderThan', 'isSameDay', 'isSet', 'lessEqual', 'lessThan'],
    ...['notEquals', 'startsWith'],
  ]);
  t.strictSame(Object.keys(textOperators).sort(), [
    ...['contains', 'doesNotContain', 'endsWith', 'equals', 'isNotSet', 'isSet', 'notEquals', 'startsWith'],
  ]);
});
