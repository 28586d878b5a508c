import t from 'tap';
import type { AttributeKey } from '#api/resources/contacts/attribute-key-store.ts';
import { isEmail, planAttributes } from '#api/resources/contacts/given-attributes.ts';

const key = (name: string, dataType: AttributeKey['dataType'] = 'string'): AttributeKey => ({
  id: `id-${name}`,
  workspaceId: 'ws1',
  key: name,
  name,
  description: '',
  isUnique: false,
  type: 'custom',
  dataType,
  isArchived: false,
  createdAt: '',
  updatedAt: '',
});

t.test('values become text; ids of the contact and blank languages are no attributes', async (t) => {
  const { values, newKeys, errors } = planAttributes(
    { plan: 'pro', age: 5, paid: false, userId: 'x', id: 'y', language: ' ', empty: '' },
    [key('plan'), key('language')],
  );
  t.strictSame(
    [...values],
    [
      ['plan', 'pro'],
      ['age', '5'],
      ['paid', 'false'],
      ['empty', ''],
    ],
  );
  t.strictSame(newKeys, ['age', 'paid', 'empty']);
  t.strictSame(errors, []);
});

t.test('finds a known key in every spelling', async (t) => {
  const { values, newKeys } = planAttributes({ 'Favorite Color': 'red', firstName: 'A' }, [
    key('Favorite Color'),
    key('firstName'),
  ]);
  t.equal(values.size, 2);
  t.strictSame(newKeys, []);
});

t.test('a key for numbers or dates accepts only these', async (t) => {
  const known = [key('age', 'number'), key('since', 'date')];
  for (const given of [{ age: 'old' }, { age: '' }, { age: true }, { since: 'today' }, { since: 5 }]) {
    const { values, errors } = planAttributes(given, known);
    t.equal(values.size, 0);
    t.equal(errors.length, 1, JSON.stringify(given));
  }
  t.strictSame(planAttributes({ age: '4.2', since: '2026-01-02' }, known).errors, []);
});

t.test('messages repeat only a short part of the input', async (t) => {
  const { errors } = planAttributes({ ['X'.repeat(100_000)]: 'x' }, []);
  t.ok((errors[0] ?? '').length < 300);
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`Bad ${i}`, 'x']));
  t.equal(planAttributes(many, []).errors.length, 51);
});

t.test('an address has an @ and three characters', async (t) => {
  for (const good of ['a@b', '@ab', 'ann@example.com']) t.ok(isEmail(good), good);
  for (const bad of ['a@', 'abc', '', 5, null, undefined, true]) t.notOk(isEmail(bad), String(bad));
});
