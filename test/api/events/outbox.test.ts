/** An event and its change are written together or not at all. */
import t from 'tap';
import { acceptFollowUps } from '#api/jobs/follow-ups.ts';
import { createResponse } from '#api/resources/responses/write.ts';
import { addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';
import { given } from '../resources/responses/new-response.ts';

const log = { warn: () => {} };

const addWebhook = (api: TestApi, triggers: readonly string[]) =>
  api.manage('POST', '/api/v1/webhooks', { workspaceId, url: 'https://hooks.example.com/', triggers });
t.test('a transaction that is rolled back leaves no event', async (t) => {
  const api = await startApi(t);
  await addWebhook(api, ['responseCreated']);
  const { id } = await addSurvey(api);
  const once = () => ({ ...given, singleUseId: 'once' });
  const eventCount = async () => (await api.context.db.selectFrom('events').select('id').execute()).length;
  await createResponse(api.context, id, once);
  t.equal(await eventCount(), 1);
  await t.rejects(createResponse(api.context, id, once), { code: 'conflict' });
  t.equal(await eventCount(), 1);

  // The outbox cannot be written, so the response is refused.
  await api.context.db.schema.alterTable('events').renameTo('elsewhere').execute();
  await t.rejects(createResponse(api.context, id, () => ({ ...given, singleUseId: 'twice' })));
  t.equal((await api.context.db.selectFrom('responses').select('id').execute()).length, 1);
});

t.test('finds events whose mails are to be made by an index', async (t) => {
  const api = await startApi(t);
  const queries = await queriesOf(api.context.db, (db) => acceptFollowUps({ ...api.context, db }, log));
  const [first] = queries;
  if (first === undefined) throw new Error('no query');
  t.match(await planOf(api.context.db, first), [/events USING INDEX events_mails/]);
});
