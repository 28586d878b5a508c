/** Messages about values of the wrong shape. */
import t from 'tap';
import { Type } from 'typebox';
import { checker } from '#api/http/validation.ts';
import { Nullable } from '#api/values/schemas.ts';

const Item = Type.Object({ name: Type.String() });
const ITEMS = 30_000;

t.test('does not check the items of a list that is far too long', (t) => {
  for (const [what, list] of [
    ['a list', Type.Array(Item, { maxItems: 10 })],
    ['a list or null', Nullable(Type.Array(Item, { maxItems: 10 }))],
  ] as const) {
    const { is, issues } = checker(Type.Object({ list }));
    let reads = 0;
    const item = {
      get name() {
        reads += 1;
        return 'x';
      },
    };
    const value = { list: Array.from({ length: ITEMS }, () => item) };
    t.notOk(is(value));
    const readsOfCheck = reads;
    reads = 0;
    t.match(issues(value), { list: /10 items/ }, what);
    t.ok(reads - readsOfCheck < 100, `${what}: ${reads - readsOfCheck} reads to say so`);
  }
  t.end();
});

t.test('still reports other mistakes next to and inside such lists', (t) => {
  const { issues } = checker(
    Type.Object({ lists: Type.Array(Type.Array(Item, { maxItems: 2 })), name: Type.String() }),
  );
  const item = { name: 'x' };
  t.strictSame(issues({ lists: [[item], [item, item, item]], name: 1 }), {
    'lists.1': 'must not have more than 2 items',
    name: 'must be string',
  });
  t.strictSame(issues({ lists: [[item, { name: 1 }]], name: 'x' }), { 'lists.0.1.name': 'must be string' });
  t.end();
});

t.test('of a value with several possible types: names them, but not null', (t) => {
  const Texts = Type.Array(Type.String());
  const { issues } = checker(
    Type.Object({ answer: Type.Union([Type.String(), Type.Number(), Texts]), note: Nullable(Item) }),
  );
  t.strictSame(issues({ answer: true, note: null }), { answer: 'must be string or number or array' });
  t.strictSame(issues({ answer: [1], note: null }), {
    answer: 'must be string or number',
    'answer.0': 'must be string',
  });
  t.strictSame(issues({ answer: 'x', note: { name: 1 } }), { 'note.name': 'must be string' });
  t.strictSame(issues({ answer: 'x', note: 1 }), { note: 'must be object' }, 'null goes without saying');
  t.strictSame(checker(Type.Null()).issues(1), { body: 'must be null' });
  t.end();
});
