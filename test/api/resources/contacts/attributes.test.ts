/** Which attributes of a client are stored. The replies are in test/conversations/user.md. */
import t from 'tap';
import { planAttributes } from '#api/resources/contacts/attributes.ts';
import { newKey } from '#api/resources/contacts/keys.ts';

const key = (name: string) => newKey({ workspaceId: 'ws1', key: name }, '', (bytes) => Buffer.alloc(bytes));
const names = (values: readonly { readonly value: string }[]) => values.map(({ value }) => value);

t.test('values become text; ids of the contact and blank languages are no attributes', async (t) => {
  const { values, newKeys, errors } = planAttributes(
    { plan: 'pro', 'Old Key': 'x', age: 5, paid: false, userId: 'x', id: 'y', language: ' ', empty: '' },
    [key('plan'), key('language'), key('Old Key')],
  );
  t.strictSame(names(values), ['pro', 'x']);
  t.strictSame(newKeys, [
    { key: 'age', value: '5' },
    { key: 'paid', value: 'false' },
    { key: 'empty', value: '' },
  ]);
  t.strictSame(errors, []);
  for (const language of ['', 5, true])
    t.strictSame(planAttributes({ language }, [key('language')]).values, []);
});

t.test('a new key has lower-case letters, digits and underscores, and three are reserved', async (t) => {
  const wrong = [
    'Plan',
    '1st',
    'a-b',
    'a b',
    '',
    '_x',
    'ключ',
    'user_id',
    'first_name',
    'last_name',
    'a'.repeat(256),
  ];
  for (const name of wrong)
    t.match(planAttributes({ [name]: 'x' }, []), { newKeys: [], errors: [/its key/] }, name);
  for (const name of ['a', 'user_ids', 'a_1', 'a'.repeat(255)])
    t.strictSame(planAttributes({ [name]: 'x' }, []).errors, [], name);
});

t.test('messages repeat only a short part of the input', async (t) => {
  const { errors } = planAttributes({ ['X'.repeat(100_000)]: 'x', long: 'x'.repeat(2_049) }, []);
  t.equal(errors.length, 2);
  for (const error of errors) t.ok(error.length < 400);
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`Bad ${i}`, 'x']));
  t.equal(planAttributes(many, []).errors.length, 50);
});
