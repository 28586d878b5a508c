/** Messages about values of the wrong shape. */
import t from 'tap';
import { Type } from 'typebox';
import { checker } from '#api/http/validation.ts';
import { Nullable } from '#api/values/schemas.ts';

const Item = Type.Object({ name: Type.String() });
const item = { name: 'x' };

t.test('does not check the items of a list that is far too long', async (t) => {
  const { is, issues } = checker(Type.Object({ list: Type.Array(Item, { maxItems: 10 }) }));
  let reads = 0;
  const counted = {
    get name() {
      reads += 1;
      return 'x';
    },
  };
  const value = { list: Array.from({ length: 30_000 }, () => counted) };
  t.notOk(is(value));
  const readsOfCheck = reads;
  t.match(issues(value), { list: /10 items/ });
  t.ok(reads - 2 * readsOfCheck < 2_000, `${reads - 2 * readsOfCheck} reads to say so`);
});

const Answer = Type.Union([Type.String(), Type.Number(), Type.Array(Type.String())]);
const Many = Type.Object({
  lists: Type.Array(Type.Array(Item, { maxItems: 2 })),
  answer: Type.Optional(Answer),
  note: Type.Optional(Nullable(Item)),
});
const cases: readonly (readonly [value: object, issues: object])[] = [
  [{ lists: [[item], [item, item, item]] }, { 'lists.1': 'must not have more than 2 items' }],
  [{ lists: [[item, { name: 1 }]] }, { 'lists.0.1.name': 'must be string' }],
  [{ lists: [[{}]] }, { 'lists.0.0.name': 'Required' }],
  [{ lists: [], answer: true }, { answer: 'must be string or number or array' }],
  [
    { lists: [], answer: [1] },
    { answer: 'must be string or number', 'answer.0': 'must be string' },
  ],
  [{ lists: [], note: { name: 1 } }, { 'note.name': 'must be string' }],
  [{ lists: [], note: 1 }, { note: 'must be object' }],
  [{ lists: [], note: null, other: 1 }, {}],
];
for (const [value, issues] of cases) {
  t.test(JSON.stringify(value), async (t) => {
    t.strictSame(checker(Many).issues(value), issues);
  });
}
