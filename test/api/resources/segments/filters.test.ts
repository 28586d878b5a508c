import t from 'tap';
import type { ContactProfile } from '#api/resources/segments/contact-profile.ts';
import { compileFilters } from '#api/resources/segments/filters.ts';
import { fc } from '#test/support/fast-check.ts';

const RUNS = 300;
const now = Date.parse('2026-01-31T00:00:00Z');
const at = (days: number): string => new Date(now - days * 86_400_000).toISOString();
const nobodyElse = () => null;

const profile: ContactProfile = {
  now,
  userId: 'ann@example.com',
  attributes: { plan: 'pro', age: '42', signed_up: '2026-01-01' },
  device: 'phone',
  displays: [
    { surveyId: 's1', createdAt: at(1) },
    { surveyId: 's2', createdAt: at(40) },
  ],
  responses: [
    { surveyId: 's1', createdAt: at(50), updatedAt: at(2), finished: true },
    { surveyId: 's3', createdAt: at(3), updatedAt: at(3), finished: false },
  ],
};

const node = (root: unknown, operator: string, value?: unknown, connector: string | null = null) => ({
  id: 'n',
  connector,
  resource: { id: 'r', root, value, qualifier: { operator } },
});
const holds = (filters: unknown, known: ContactProfile = profile): boolean => {
  const compiled = compileFilters(filters);
  if ('issues' in compiled) throw new Error(JSON.stringify(compiled.issues));
  return compiled.condition(known, nobodyElse);
};
const interaction = { type: 'surveyInteraction' };
const attribute = (key: string) => ({ type: 'attribute', contactAttributeKey: key });
const person = { type: 'person', personIdentifier: 'userId' };
const phone = { type: 'device', deviceType: 'phone' };

t.test('every kind of filter, with contacts that match and that do not', async (t) => {
  const cases: readonly (readonly [boolean, unknown, string, unknown])[] = [
    [true, attribute('plan'), 'equals', 'pro'],
    [false, attribute('toString'), 'isSet', null],
    [true, { type: 'attribute', attributeClassName: 'age' }, 'greaterThan', 41],
    [true, attribute('signed_up'), 'isNewerThan', { amount: 1, unit: 'months' }],
    [true, person, 'endsWith', '@example.com'],
    [false, person, 'notEquals', 'ann@example.com'],
    [true, person, 'isSet', ''],
    [true, phone, 'equals', 'phone'],
    [false, phone, 'notEquals', 'phone'],
    [true, { type: 'device', deviceType: 'desktop' }, 'notEquals', undefined],
    [true, interaction, 'haveSeen', { surveyScope: 'any' }],
    [true, interaction, 'haveSeen', { surveyScope: 'specific', surveyIds: ['s2'] }],
    [
      false,
      interaction,
      'haveSeen',
      { surveyScope: 'specific', surveyIds: ['s2'], within: { amount: 4, unit: 'weeks' } },
    ],
    [
      true,
      interaction,
      'haveNotSeen',
      { surveyScope: 'specific', surveyIds: ['s2'], within: { amount: 1, unit: 'months' } },
    ],
    [false, interaction, 'haveNotSeen', { surveyScope: 'any', within: { amount: 2, unit: 'days' } }],
    [
      true,
      interaction,
      'haveCompleted',
      { surveyScope: 'specific', surveyIds: ['s1'], within: { amount: 3, unit: 'days' } },
    ],
    [false, interaction, 'haveCompleted', { surveyScope: 'specific', surveyIds: ['s3'] }],
    [true, interaction, 'haveNotCompleted', { surveyScope: 'specific', surveyIds: ['s3'], within: null }],
    [true, interaction, 'haveStartedRespondingTo', { surveyScope: 'specific', surveyIds: ['s3'] }],
    [
      false,
      interaction,
      'haveStartedRespondingTo',
      { surveyScope: 'specific', surveyIds: ['s1'], within: { amount: 3, unit: 'days' } },
    ],
    [false, interaction, 'haveSeen', { surveyScope: 'specific' }],
  ];
  for (const [expected, root, operator, value] of cases) {
    t.equal(
      holds([node(root, operator, value)]),
      expected,
      `${JSON.stringify(root)} ${operator} ${JSON.stringify(value)}`,
    );
  }
  t.equal(holds([node(person, 'isNotSet')], { ...profile, userId: null }), true);
});

t.test('no filters match every contact', async (t) => {
  t.equal(holds([]), true);
  t.equal(holds([{ id: 'g', connector: null, resource: [] }]), true);
});

t.test('"and" binds before "or", at any depth', async (t) => {
  const leaf = fc
    .boolean()
    .map((value) => ({ value, filter: node(phone, value ? 'equals' : 'notEquals', 'phone') }));
  interface Expression {
    readonly value: boolean;
    readonly filter: { readonly resource: unknown };
  }
  const { tree } = fc.letrec<{ tree: Expression; group: Expression }>((tie) => ({
    tree: fc.oneof({ maxDepth: 4 }, leaf, tie('group')),
    group: fc
      .array(fc.tuple(fc.constantFrom('and', 'or'), tie('tree')), { minLength: 1, maxLength: 5 })
      .map((terms) => {
        // JavaScript's own precedence is the reference.
        const text = terms.map(
          ([connector, { value }], i) => `${i === 0 ? '' : connector === 'and' ? ' && ' : ' || '}${value}`,
        );
        return {
          value: new Function(`return ${text.join('')};`)() === true,
          filter: {
            id: 'g',
            connector: null,
            resource: terms.map(([connector, { filter }], i) => ({
              ...filter,
              connector: i === 0 ? null : connector,
            })),
          },
        };
      }),
  }));
  fc.assert(
    fc.property(tree, ({ value, filter }) => holds([{ ...filter, connector: null }]) === value),
    { numRuns: RUNS },
  );
  t.pass(`${RUNS} expressions`);
});

t.test('reports all mistakes, with their paths', async (t) => {
  const compiled = compileFilters([
    node(attribute('age'), 'lessThan', 'old'),
    { ...node(phone, 'equals', 'watch'), connector: 'and' },
    { id: 'g', connector: 'or', resource: [node(person, 'lessThan', 1)] },
    { ...node(phone, 'equals', 'phone'), connector: 'xor' },
    { connector: 'and' },
    'x',
    { ...node({ type: 'weather' }, 'equals', 'rain'), connector: 'or' },
    {
      ...node(interaction, 'haveSeen', { surveyScope: 'any', within: { amount: 1, unit: 'years' } }),
      connector: 'or',
    },
    { ...node({ type: 'attribute' }, 'isSet'), connector: 'or' },
    { ...node(undefined, 'isSet'), connector: 'or' },
    { connector: 'or', resource: { root: phone, value: 'phone' } },
    { ...node({ type: 'person', personIdentifier: 'email' }, 'isSet'), connector: 'or' },
    { ...node({ type: 'segment' }, 'userIsIn'), connector: 'or' },
    { ...node({ type: 'segment', segmentId: 'x' }, 'equals'), connector: 'or' },
    { ...node(phone, 'isSet'), connector: 'or' },
    { ...node(interaction, 'haveDreamed', {}), connector: 'or' },
    { ...node(interaction, 'haveSeen', 'x'), connector: 'or' },
    { ...node(interaction, 'haveSeen', {}), connector: 'or' },
    { ...node(interaction, 'haveSeen', { surveyScope: 'any', surveyIds: [1] }), connector: 'or' },
  ]);
  if (!('issues' in compiled)) return t.fail('the filters are refused');
  t.strictSame(Object.keys(compiled.issues), [
    'filters.0.resource.value',
    'filters.1.resource.value',
    'filters.2.resource.0.resource.qualifier.operator',
    'filters.3.connector',
    'filters.4.resource',
    'filters.5',
    'filters.6.resource.root.type',
    'filters.7.resource.value.within',
    'filters.8.resource.root.contactAttributeKey',
    'filters.9.resource.root',
    'filters.10.resource.qualifier.operator',
    'filters.11.resource.root.personIdentifier',
    'filters.12.resource.value',
    'filters.13.resource.qualifier.operator',
    'filters.14.resource.qualifier.operator',
    'filters.15.resource.qualifier.operator',
    'filters.16.resource.value',
    'filters.17.resource.value.surveyScope',
    'filters.18.resource.value.surveyIds',
  ]);
  t.equal(compiled.issues['filters.0.resource.value'], 'must be a number for this operator');
});

t.test('depth, number and reported mistakes are bounded', async (t) => {
  const nested = (depth: number): unknown =>
    depth === 0
      ? [node(phone, 'equals', 'phone')]
      : [{ id: 'g', connector: null, resource: nested(depth - 1) }];
  t.equal(holds(nested(9)), true);
  t.match(compileFilters(nested(10)), { issues: Object });
  t.match(compileFilters(nested(90)), { issues: Object });
  const many = Array.from({ length: 501 }, () => node(phone, 'equals', 'phone', 'and'));
  t.equal(holds(many.slice(1)), true);
  t.match(compileFilters(many), { issues: { filters: /500/ } });
  const wrong = compileFilters(Array.from({ length: 400 }, () => 'x'));
  t.equal('issues' in wrong && Object.keys(wrong.issues).length, 50);
});

t.test('random filters are compiled or refused, and compiled ones can be queried', async (t) => {
  const word = fc.constantFrom(
    ...[
      'id',
      'connector',
      'resource',
      'root',
      'value',
      'qualifier',
      'operator',
      'type',
      'segment',
      'device',
      'person',
    ],
    ...[
      'attribute',
      'surveyInteraction',
      'contactAttributeKey',
      'equals',
      'isBetween',
      'haveSeen',
      'userIsIn',
      'toString',
    ],
  );
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 6 },
      fc.constantFrom(null, 'and', 'or', 'phone', 5, '2026-01-01'),
      word,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(word, tie('value'), { maxKeys: 5 }),
    ),
  })).value;
  const root = fc.record({
    type: fc.constantFrom('attribute', 'person', 'segment', 'device', 'surveyInteraction'),
    contactAttributeKey: fc.constantFrom('plan', 'age', '__proto__'),
    personIdentifier: fc.constant('userId'),
  });
  const operator = fc.constantFrom(
    'equals',
    'isSet',
    'isBetween',
    'isOlderThan',
    'haveSeen',
    'userIsIn',
    'constructor',
  );
  const filter = fc.record({
    connector: fc.constantFrom('and', 'or'),
    resource: fc.record({ root, value: json, qualifier: fc.record({ operator }) }),
  });
  fc.assert(
    fc.property(fc.oneof(json, fc.array(filter)), (filters) => {
      const compiled = compileFilters(filters);
      return 'issues' in compiled || typeof compiled.condition(profile, nobodyElse) === 'boolean';
    }),
    { numRuns: RUNS },
  );
  t.pass(`${RUNS} values`);
});
