import t from 'tap';
import { attributeKeys } from '#api/resources/contacts/keys.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';

t.test('a row that is deleted while it is changed is not found', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const made = await api.manage('POST', '/api/v1/management/contact-attribute-keys', {
    workspaceId,
    key: 'plan',
    type: 'custom',
  });
  const { id } = made.json.data;
  const changed = attributeKeys.change(
    api.context,
    { id, workspaceId },
    'Attribute Key',
    async (_stored, trx) => {
      t.equal(await attributeKeys.remove(trx, id), true);
      t.equal(await attributeKeys.remove(trx, id), false, 'and only once');
      return { name: 'Changed' };
    },
  );
  await t.rejects(changed, { code: 'not_found' });
  t.not(await attributeKeys.find(db, id), null, 'a refused change is rolled back');
});
