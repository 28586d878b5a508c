/** A name that is also a member of every JavaScript object is data. test/conversations/errors.md has more of them. */
import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);

t.test('an attribute class may have any name', async (t) => {
  const path = '/api/v1/management/attribute-classes';
  const made = await api.manage('POST', path, { workspaceId, name: '__proto__', type: 'code' });
  t.equal(made.status, 200);
  const { db } = api.context;
  await api.client('POST', `/api/v1/client/${workspaceId}/user`, { userId: 'u1' });
  const contact = await db.selectFrom('contacts').selectAll().executeTakeFirstOrThrow();
  await db
    .insertInto('contactAttributes')
    .values({
      id: 'proto',
      contactId: contact.id,
      attributeKeyId: made.json.data.id,
      value: 'kept',
      createdAt: contact.createdAt,
      updatedAt: contact.createdAt,
    })
    .execute();
  const { text } = await api.manage('GET', '/api/v1/management/people');
  t.match(text, '"__proto__":"kept"');
});
