import t from 'tap';
import type { ContactProfile } from '#api/resources/segments/contact-profile.ts';
import { compileSegments, segmentsOf } from '#api/resources/segments/evaluate.ts';

const profile: ContactProfile = {
  now: 0,
  userId: 'u',
  attributes: { plan: 'pro' },
  device: 'desktop',
  displays: [],
  responses: [],
};
const node = (root: unknown, operator: string, value: unknown, connector: string | null = null) => ({
  id: 'n',
  connector,
  resource: { id: 'r', root, value, qualifier: { operator } },
});
const isIn = (id: string) => node({ type: 'segment', segmentId: id }, 'userIsIn', id);
const isNotIn = (id: string) => node({ type: 'segment', segmentId: id }, 'userIsNotIn', id);
const plan = (value: string) => node({ type: 'attribute', contactAttributeKey: 'plan' }, 'equals', value);
const members = (segments: Readonly<Record<string, unknown>>): readonly string[] =>
  segmentsOf(compileSegments(Object.entries(segments).map(([id, filters]) => ({ id, filters }))), profile);

t.test('evaluates in the given order, whatever refers to what', async (t) => {
  const segments = {
    third: [isIn('second')],
    everybody: [],
    second: [isIn('first')],
    others: [isNotIn('third')],
    first: [plan('pro')],
    free: [plan('free')],
    notFree: [isNotIn('free')],
  };
  t.strictSame(members(segments), ['third', 'everybody', 'second', 'first', 'notFree']);
  const reversed = Object.fromEntries(Object.entries(segments).toReversed());
  t.strictSame(members(reversed), ['notFree', 'first', 'second', 'everybody', 'third']);
});

t.test('a cycle has no members, nor has any segment that depends on it, in any order', async (t) => {
  const segments = {
    self: [isIn('self')],
    selfNot: [isNotIn('selfNot')],
    a: [isNotIn('b')],
    b: [isNotIn('a')],
    outside: [isNotIn('a')],
    fine: [plan('pro')],
  };
  t.strictSame(members(segments), ['fine']);
  t.strictSame(members(Object.fromEntries(Object.entries(segments).toReversed())), ['fine']);
});

t.test('a segment that cannot be evaluated matches neither a filter for it nor against it', async (t) => {
  const segments = {
    broken: [{ nonsense: true }],
    in: [isIn('broken')],
    notIn: [isNotIn('broken')],
    gone: [isNotIn('nowhere')],
    alternative: [isIn('broken'), { ...plan('pro'), connector: 'or' }],
  };
  t.strictSame(members(segments), ['alternative']);
});

t.test('evaluates a chain of hundreds, and does not overflow the stack on thousands', async (t) => {
  const length = 500;
  const chain = (length: number) =>
    Object.fromEntries(
      Array.from({ length }, (_, i) => [`s${i}`, i === length - 1 ? [] : [isIn(`s${i + 1}`)]]),
    );
  t.equal(members(chain(length)).length, length);
  t.ok(members(chain(10 * length)).includes(`s${10 * length - 1}`));
});
