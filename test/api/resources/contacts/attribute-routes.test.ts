import t from 'tap';
import { listContactAttributes } from '#api/resources/contacts/attribute-store.ts';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';
import { isOnPostgres } from '#test/support/database.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';

const api = await startApi(t);
const { db, random, clock } = api.context;
const path = '/api/v1/management/contact-attributes';
const now = new Date(clock()).toISOString();
await api.addWorkspace('ws2');

t.test('GET list 200: the values in all workspaces that the key can access', async (t) => {
  t.strictSame((await api.manage('GET', path)).json, { data: [] });
  const ann = await findOrCreateContact(db, workspaceId, 'ann', now, random);
  const bob = await findOrCreateContact(db, workspaceId, 'bob', '2026-01-01T00:00:00.000Z', random);
  await findOrCreateContact(db, 'ws2', 'fay', now, random);
  const { data } = (await api.manage('GET', path)).json;
  t.equal(data.length, 2);
  const { id, attributeKeyId } = data[1];
  t.strictSame(data[1], {
    id,
    attributeKeyId,
    contactId: ann.id,
    value: 'ann',
    createdAt: now,
    updatedAt: now,
  });
  t.equal(data[0].contactId, bob.id, 'oldest first');
  const key = await db
    .selectFrom('contactAttributeKeys')
    .select('key')
    .where('id', '=', attributeKeyId)
    .executeTakeFirst();
  t.strictSame(key, { key: 'userId' });
  t.strictSame((await api.manage('GET', `${path}?limit=1&skip=1`)).json.data, [data[1]]);
});

t.test('the list reads its index in order', async (t) => {
  const [query] = await queriesOf(db, (on) =>
    listContactAttributes(on, ['ws1', 'ws2'], { limit: 5, skip: 0 }),
  );
  if (query === undefined) return t.fail('the request ran no query');
  const plan = (await planOf(db, query)).join('; ');
  t.match(plan, /SEARCH contactAttributes USING INDEX contactAttributes_list \(attributeKeyId=\?\)/);
  // PostgreSQL sorts the rows of several keys.
  t.notMatch(plan, isOnPostgres ? /SCAN contactAttributes / : /SCAN|TEMP B-TREE FOR ORDER/);
});
