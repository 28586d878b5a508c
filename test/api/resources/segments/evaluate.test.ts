import { join } from 'node:path';
import t from 'tap';
import { type ContactProfile, segmentsOf } from '#api/resources/segments/evaluate.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { fc } from '#test/support/fast-check.ts';

const FILE = join(import.meta.dirname, 'filters.md');
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
const phone = { type: 'device', deviceType: 'phone' };
const members = (segments: Readonly<Record<string, unknown>>, of = profile): readonly string[] =>
  segmentsOf(
    Object.entries(segments).map(([id, filters]) => ({ id, filters })),
    of,
  );
const holds = (filters: unknown, of = profile): boolean => members({ one: filters }, of).length > 0;

t.test('operators on an attribute', async (t) => {
  const heading = 'An operator and its value, attributes that match, and some that do not';
  for (const [operator = '', value = '', held = '', failed = ''] of casesUnder(FILE, heading)) {
    const filters = [node(attribute('x'), operator, JSON.parse(value))];
    for (const [expected, list] of [
      [true, held],
      [false, failed],
    ] as const) {
      for (const x of JSON.parse(list)) {
        const attributes: Record<string, string> = x === null ? {} : { x };
        const name = `${operator} ${value} is ${expected} for ${x}`;
        t.equal(holds(filters, { ...profile, attributes }), expected, name);
      }
    }
  }
});

t.test('every other kind of filter', async (t) => {
  for (const [root = '', operator, value = '', expected] of casesUnder(
    FILE,
    'Whether a filter of another kind matches',
  ))
    t.equal(
      String(holds([node(JSON.parse(root), operator, JSON.parse(value))])),
      expected,
      `${root} ${operator} ${value}`,
    );
});

t.test('what is no filter, or has no value that its operator knows, matches nobody', async (t) => {
  const of = { ...profile, attributes: { plan: 'pro', since: ago(0) } };
  for (const [filter = ''] of casesUnder(FILE, 'What is no filter, or has no value that its operator knows'))
    t.equal(holds([JSON.parse(filter)], of), false, filter);
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
