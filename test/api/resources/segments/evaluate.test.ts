import t from 'tap';
import { type ContactProfile, segmentsOf } from '#api/resources/segments/evaluate.ts';
import { fc } from '#test/support/fast-check.ts';

const RUNS = 300;
const now = Date.parse('2026-03-31T12:00:00Z');
const ago = (days: number): string => new Date(now - days * 86_400_000).toISOString();

const profile: ContactProfile = {
  now,
  userId: 'ann@example.com',
  attributes: { plan: 'pro' },
  device: 'phone',
  displays: [
    { surveyId: 's1', createdAt: ago(1) },
    { surveyId: 's2', createdAt: ago(40) },
  ],
  responses: [
    { surveyId: 's1', createdAt: ago(50), updatedAt: ago(2), finished: true },
    { surveyId: 's3', createdAt: ago(3), updatedAt: ago(3), finished: false },
  ],
};

const node = (root: unknown, operator: unknown, value?: unknown, connector: string | null = null) => ({
  id: 'n',
  connector,
  resource: { id: 'r', root, value, qualifier: { operator } },
});
const attribute = (key: string) => ({ type: 'attribute', contactAttributeKey: key });
const person = { type: 'person', personIdentifier: 'userId' };
const phone = { type: 'device', deviceType: 'phone' };
const interaction = { type: 'surveyInteraction' };
const members = (segments: Readonly<Record<string, unknown>>, of = profile): readonly string[] =>
  segmentsOf(
    Object.entries(segments).map(([id, filters]) => ({ id, filters })),
    of,
  );
const holds = (filters: unknown, of = profile): boolean => members({ one: filters }, of).length > 0;

/** Each row: operator, value, attributes for which it is true, and those for which it is false. */
const rows: readonly (readonly [string, unknown, readonly unknown[], readonly unknown[]])[] = [
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
  ['isOlderThan', { amount: 1, unit: 'days' }, [ago(1.1), '2001-01-01'], [ago(1), ago(-5), 'x', undefined]],
  ['isOlderThan', { amount: 1, unit: 'months' }, ['2026-02-28T11:59:59Z'], ['2026-02-28T12:00:00Z']],
  ['isNewerThan', { amount: 2, unit: 'weeks' }, [ago(14), ago(0), ago(-1)], [ago(14.1), '', undefined]],
  ['isNewerThan', { amount: 1, unit: 'years' }, ['2025-03-31T12:00:00Z'], ['2025-03-31T11:59:59Z']],
  ['isBefore', '2026-01-10', ['2026-01-09T23:59:59.999Z'], ['2026-01-10', 'x', undefined]],
  ['isAfter', '2026-01-10', ['2026-01-11'], ['2026-01-10T23:59:59Z', '2026-01-09']],
  ['isAfter', '2026-01-10T12:00:00Z', ['2026-01-10T12:00:00.001Z'], ['2026-01-10T12:00:00Z']],
  ['isSameDay', '2026-01-10', ['2026-01-10T23:59:59Z', '2026-01-11T00:30:00+01:00'], ['2026-01-11', 'x']],
  [
    'isBetween',
    ['2026-01-10', '2026-01-12'],
    ['2026-01-10', '2026-01-12T23:59:59Z'],
    ['2026-01-13', '2026-01-09', 'x'],
  ],
  ['isBetween', [1, 5], ['1', '5', '2.5'], ['0.9', '5.1', '', 'x', undefined]],
];

t.test('operators on an attribute', async (t) => {
  for (const [operator, value, held, failed] of rows) {
    const filters = [node(attribute('x'), operator, value)];
    for (const [expected, given] of [
      ...held.map((one) => [true, one] as const),
      ...failed.map((one) => [false, one] as const),
    ]) {
      const attributes: Record<string, string> = given === undefined ? {} : { x: String(given) };
      const name = `${operator} ${JSON.stringify(value)} is ${expected} for ${given}`;
      t.equal(holds(filters, { ...profile, attributes }), expected, name);
    }
  }
});

t.test('every other kind of filter', async (t) => {
  const any = { surveyScope: 'any' };
  const specific = (id: string, within: unknown = null) => ({
    ...{ surveyScope: 'specific', surveyIds: [id], within },
  });
  const cases: readonly (readonly [boolean, unknown, string, unknown?])[] = [
    [true, { type: 'attribute', attributeClassName: 'plan' }, 'equals', 'pro'],
    [false, attribute('toString'), 'isSet'],
    [true, person, 'endsWith', '@example.com'],
    [false, person, 'notEquals', 'ann@example.com'],
    [true, phone, 'equals', 'phone'],
    [false, phone, 'notEquals'],
    [true, { type: 'device', deviceType: 'desktop' }, 'notEquals'],
    [true, interaction, 'haveSeen', any],
    [true, interaction, 'haveSeen', specific('s2')],
    [false, interaction, 'haveSeen', specific('s2', { amount: 4, unit: 'weeks' })],
    [true, interaction, 'haveNotSeen', specific('s2', { amount: 1, unit: 'months' })],
    [false, interaction, 'haveNotSeen', { surveyScope: 'any', within: { amount: 2, unit: 'days' } }],
    [true, interaction, 'haveCompleted', specific('s1', { amount: 3, unit: 'days' })],
    [false, interaction, 'haveCompleted', specific('s3')],
    [true, interaction, 'haveNotCompleted', specific('s3')],
    [true, interaction, 'haveStartedRespondingTo', specific('s3')],
    [false, interaction, 'haveStartedRespondingTo', specific('s1', { amount: 3, unit: 'days' })],
  ];
  for (const [expected, root, operator, value] of cases) {
    const name = `${JSON.stringify(root)} ${operator} ${JSON.stringify(value)}`;
    t.equal(holds([node(root, operator, value)]), expected, name);
  }
});

t.test('what is no filter, or has no value that its operator knows, matches nobody', async (t) => {
  const unknown: readonly unknown[] = [
    'x',
    {},
    { resource: 'x' },
    { resource: { root: phone, value: 'phone' } },
    node({ type: 'weather' }, 'equals', 'rain'),
    node(person, 'constructor', 'x'),
    node(attribute('plan'), 'notEquals', {}),
    node(attribute('plan'), 'doesNotContain', 5),
    ...[{ amount: 0, unit: 'days' }, { amount: 1.5, unit: 'days' }, { amount: 1_000, unit: 'days' }, 5].map(
      (value) => node(attribute('since'), 'isNewerThan', value),
    ),
    node(attribute('since'), 'isNewerThan', { amount: 1, unit: 'hours' }),
    ...[['2026-01-01'], ['2026-01-01', 5], ['2026-01-01', 'x'], 'x'].map((value) =>
      node(attribute('since'), 'isBetween', value),
    ),
    node(interaction, 'haveNotDreamed', { surveyScope: 'any' }),
    node(interaction, 'haveNotSeen', {}),
    node(interaction, 'haveNotSeen', { surveyScope: 'any', within: {} }),
  ];
  const of = { ...profile, attributes: { plan: 'pro', since: ago(0) } };
  for (const filter of unknown) t.equal(holds([filter], of), false, JSON.stringify(filter));
  t.equal(holds('x'), false);
  t.equal(holds([]), true, 'without filters everybody matches');
});

t.test('any JSON is evaluated', async (t) => {
  const word = fc.constantFrom(
    'connector',
    'resource',
    'root',
    'value',
    'qualifier',
    'operator',
    'type',
    'or',
  );
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 6 },
      fc.constantFrom(null, 'and', 'or', 'phone', 5, '2026-01-01'),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(word, tie('value'), { maxKeys: 5 }),
    ),
  })).value;
  const root = fc.record({
    type: fc.constantFrom('attribute', 'person', 'segment', 'device', 'surveyInteraction'),
    contactAttributeKey: fc.constantFrom('plan', '__proto__'),
  });
  const operator = fc.constantFrom('equals', 'isSet', 'isBetween', 'isOlderThan', 'haveSeen', 'userIsIn', 5);
  const filter = fc.record({
    resource: fc.record({ root, value: json, qualifier: fc.record({ operator }) }),
  });
  fc.assert(
    fc.property(fc.oneof(json, fc.array(filter)), (filters) => typeof holds(filters) === 'boolean'),
    { numRuns: RUNS },
  );
  t.pass(`${RUNS} values`);
});

t.test('"and" binds before "or", at any depth', async (t) => {
  interface Expression {
    readonly value: boolean;
    readonly filter: { readonly resource: unknown };
  }
  const leaf = fc
    .boolean()
    .map((value) => ({ value, filter: node(phone, value ? 'equals' : 'notEquals', 'phone') }));
  const { tree } = fc.letrec<{ tree: Expression; group: Expression }>((tie) => ({
    tree: fc.oneof({ maxDepth: 4 }, leaf, tie('group')),
    group: fc
      .array(fc.tuple(fc.constantFrom('and', 'or'), tie('tree')), { minLength: 1, maxLength: 5 })
      .map((terms) => {
        // JavaScript's own precedence is the reference.
        const text = terms.map(
          ([connector, { value }], i) => `${i === 0 ? '' : connector === 'and' ? ' && ' : ' || '}${value}`,
        );
        const resource = terms.map(([connector, { filter }], i) => ({
          ...filter,
          connector: i === 0 ? null : connector,
        }));
        const value = new Function(`return ${text.join('')};`)() === true;
        return { value, filter: { id: 'g', connector: null, resource } };
      }),
  }));
  fc.assert(
    fc.property(tree, ({ value, filter }) => holds([{ ...filter, connector: null }]) === value),
    { numRuns: RUNS },
  );
  t.pass(`${RUNS} expressions`);
});

const isIn = (id: string) => node({ type: 'segment', segmentId: id }, 'userIsIn', id);
const isNotIn = (id: string) => node({ type: 'segment', segmentId: id }, 'userIsNotIn', id);
const plan = (value: string) => node(attribute('plan'), 'equals', value);

t.test('segments that refer to others, in any order', async (t) => {
  const segments = {
    third: [isIn('second')],
    everybody: [],
    second: [isIn('first')],
    others: [isNotIn('third')],
    first: [plan('pro')],
    free: [plan('free')],
    notFree: [isNotIn('free')],
    gone: [isNotIn('nowhere')],
    // What depends on itself has no members, and nothing can be said about it.
    self: [isIn('self')],
    selfNot: [isNotIn('selfNot')],
    a: [isNotIn('b')],
    b: [isNotIn('a')],
    outside: [isNotIn('a')],
    alternative: [isIn('nowhere'), { ...plan('pro'), connector: 'or' }],
  };
  const expected = ['third', 'everybody', 'second', 'first', 'notFree', 'alternative'];
  t.strictSame(members(segments), expected);
  const reversed = Object.fromEntries(Object.entries(segments).toReversed());
  t.strictSame(members(reversed), expected.toReversed());
});

t.test('a chain of hundreds is decided, and one of thousands does not overflow the stack', async (t) => {
  const chain = (length: number) =>
    Object.fromEntries(
      Array.from({ length }, (_, i) => [`s${i}`, i === length - 1 ? [] : [isIn(`s${i + 1}`)]]),
    );
  t.equal(members(chain(500)).length, 500);
  t.ok(members(chain(5_000)).includes('s4999'));
});
