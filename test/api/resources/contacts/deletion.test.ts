/** Other requests do not wait for the deletion of a contact with many displays and responses. */
import t from 'tap';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { responseRow } from '#test/support/response-row.ts';

t.test('deletes a contact in slices, between which others can read and write', async (t) => {
  const api = await startApi(t);
  const { db, random } = api.context;
  const { id: surveyId } = await addSurvey(api);
  const now = '2026-01-01T00:00:00.000Z';
  const { id: contactId } = await findOrCreateContact(db, workspaceId, 'u1', now, random);
  const row = { createdAt: now, updatedAt: now, surveyId, contactId };
  for (let start = 0; start < 1_000; start += 250) {
    const ids = Array.from({ length: 250 }, (_, i) => start + i);
    await db
      .insertInto('displays')
      .values(ids.map((i) => ({ ...row, id: `d${i}` })))
      .execute();
    await db
      .insertInto('responses')
      .values(ids.map((i) => ({ ...responseRow(`r${i}`, surveyId), contactId, displayId: `d${i}` })))
      .execute();
  }
  const left = async (table: 'displays' | 'responses'): Promise<number> =>
    (await db.selectFrom(table).select('id').where('contactId', '=', contactId).execute()).length;
  let isDone = false;
  const deleting = api.manage('DELETE', `/api/v1/management/contacts/${contactId}`).finally(() => {
    isDone = true;
  });
  const seen = { displays: new Set<number>(), responses: new Set<number>() };
  while (!isDone) {
    for (const table of ['displays', 'responses'] as const) seen[table].add(await left(table));
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.equal((await deleting).status, 200);
  for (const table of ['displays', 'responses'] as const) {
    const parts = [...seen[table]].filter((count) => count > 0 && count < 1_000);
    t.ok(parts.length > 0, `${table}: others can read when it is half done`);
    t.equal(await left(table), 0);
  }
  const rows = await db.selectFrom('responses').select(['contactId', 'displayId']).execute();
  t.equal(rows.length, 1_000, 'the responses stay');
  t.ok(rows.every((one) => one.contactId === null && one.displayId === null));
  t.strictSame(await db.selectFrom('contactAttributes').selectAll().execute(), []);
});
