/** How contacts are read. The replies are in test/conversations/contacts.md. */
import t from 'tap';
import { attributesOf, contacts, listContactAttributes, listPeople } from '#api/resources/contacts/store.ts';
import { startApi } from '#test/support/api-app.ts';
import { isOnPostgres } from '#test/support/database.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';

const { db } = (await startApi(t)).context;

t.test('lists read their index in order, with any number of workspaces', async (t) => {
  for (const list of [contacts.list, listPeople]) {
    for (const workspaces of [['ws1'], ['ws1', 'ws2', 'ws3']]) {
      const [query] = await queriesOf(db, (on) => list(on, workspaces, { limit: 5, skip: 5 }));
      if (query === undefined) return t.fail('the request ran no query');
      const plan = await planOf(db, query);
      // Up to version 16, PostgreSQL sorts the rows that it finds under several values of an index.
      const maySort = isOnPostgres && workspaces.length > 1;
      t.strictSame(
        plan.filter((step) => !maySort || step !== 'USE TEMP B-TREE FOR ORDER BY'),
        ['SEARCH contacts USING INDEX contacts_list (workspaceId=?)'],
      );
    }
  }
});

t.test('the list of attributes reads its index in order', async (t) => {
  const [query] = await queriesOf(db, (on) =>
    listContactAttributes(on, ['ws1', 'ws2'], { limit: 5, skip: 0 }),
  );
  if (query === undefined) return t.fail('the request ran no query');
  const plan = (await planOf(db, query)).join('; ');
  // PostgreSQL sorts the rows of several keys, so any index that begins with the key is as good.
  const index = isOnPostgres
    ? /contactAttributes_\w+ \(attributeKeyId=\?\)/
    : /contactAttributes_list \(attributeKeyId=\?\)/;
  t.match(plan, index);
  t.notMatch(plan, isOnPostgres ? /SCAN contactAttributes / : /SCAN|TEMP B-TREE FOR ORDER/);
});

t.test('one query on indexes reads the attributes of many people', async (t) => {
  const queries = await queriesOf(db, (on) => attributesOf(on, ['cann', 'cfay']));
  t.equal(queries.length, 1);
  for (const query of queries) t.notMatch((await planOf(db, query)).join('; '), /SCAN/);
});
