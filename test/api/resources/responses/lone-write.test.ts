/** A response that comes alone is one statement; whatever else it brings about makes it a transaction again. */
import t, { type Test } from 'tap';
import { keepContactByUserId } from '#api/resources/contacts/store.ts';
import { createResponse } from '#api/resources/responses/write.ts';
import { findAnsweredSurvey } from '#api/resources/surveys/store.ts';
import { addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { isOnPostgres } from '#test/support/database.ts';
import { queriesOf } from '#test/support/query-plan.ts';

const now = '2026-01-01T00:00:00.000Z';
const given = {
  finished: true,
  data: { q1: 'x' },
  variables: {},
  ttc: {},
  meta: {},
  displayId: null,
  singleUseId: null,
  endingId: null,
  language: null,
  createdAt: now,
  updatedAt: now,
};

const webhook = { workspaceId, url: 'https://hooks.example.com/', triggers: ['responseCreated'] };

async function start(t: Test) {
  let notified = 0;
  const api = await startApi({
    parts: ({ outbox }) => ({
      outbox: {
        ...outbox,
        notify() {
          notified += 1;
        },
      },
    }),
  });
  t.teardown(() => api.close());
  const { id } = await addSurvey(api);
  const survey = await findAnsweredSurvey(api.context.db, id);
  if (survey === null) throw new Error('no survey');
  return { ...api, survey, notified: () => notified };
}

const create = ({ context, survey }: Awaited<ReturnType<typeof start>>, db = context.db) =>
  createResponse({ ...context, db }, survey, given, async () => null, { mustBeOpen: true });

const rowsOf = ({ context }: TestApi) =>
  context.db.selectFrom('responses').select(['id', 'contactId', 'finished']).execute();

t.test('one statement', async (t) => {
  const api = await start(t);
  const queries = await queriesOf(api.context.db, (db) => create(api, db));
  t.equal(queries.length, 1);
  const [row] = await rowsOf(api);
  t.equal(row?.finished, 1);
  t.equal(api.notified(), 0, 'nobody is woken for nothing');
});

t.test('the survey is closed after it was read', async (t) => {
  const api = await start(t);
  await api.context.db.updateTable('surveys').set({ status: 'paused' }).execute();
  await t.rejects(create(api), { code: 'forbidden' });
  t.strictSame(await rowsOf(api), []);
});

t.test('the survey is archived after it was read', async (t) => {
  const api = await start(t);
  await api.context.db.updateTable('surveys').set({ archivedAt: now }).execute();
  await t.rejects(create(api), { code: 'forbidden' });
});

t.test('the survey is deleted after it was read', async (t) => {
  const api = await start(t);
  await api.context.db.deleteFrom('surveys').execute();
  await t.rejects(create(api), { code: 'not_found' });
});

t.test('the contact is deleted after it was read', async (t) => {
  const api = await start(t);
  const { context, survey } = api;
  const gone = { id: 'c'.padEnd(25, '0'), workspaceId, userId: 'u', createdAt: now, updatedAt: now };
  const response = await createResponse(context, survey, given, async () => gone, { mustBeOpen: true });
  t.strictSame(await rowsOf(api), [{ id: response.id, contactId: null, finished: 1 }]);
});

t.test('a contact is not locked by itself, which would be a write of its own', async (t) => {
  const api = await start(t);
  const { context, survey } = api;
  const locksOf = async (displayId: string | null): Promise<number> => {
    const queries = await queriesOf(context.db, (db) =>
      createResponse(
        { ...context, db },
        survey,
        { ...given, displayId },
        (on) => keepContactByUserId(on, workspaceId, 'u'),
        { mustBeOpen: true },
      ).catch(() => null),
    );
    const asked = queries.filter(({ sql }) => sql.includes('from "contacts"') && sql.includes('"userId" ='));
    t.ok(asked.length === 1, `${asked.length} questions for the contact`);
    return asked.filter(({ sql }) => sql.includes('for key share')).length;
  };
  t.equal(await locksOf(null), 0);
  t.equal(await locksOf('c'.padEnd(25, '1')), isOnPostgres ? 1 : 0, 'in a transaction it is');
});

t.test('a webhook is made after the survey was read', async (t) => {
  const api = await start(t);
  await api.manage('POST', '/api/v1/webhooks', webhook);
  await create(api);
  t.equal((await api.context.db.selectFrom('events').select('id').execute()).length, 2, 'it hears of it');
});

t.test('a webhook hears of it', async (t) => {
  const api = await start(t);
  const { context, survey } = api;
  t.equal(survey.hasWebhooks, false);
  const made = await api.manage('POST', '/api/v1/webhooks', webhook);
  t.equal(made.status, 200);
  const known = await findAnsweredSurvey(context.db, survey.id);
  t.equal(known?.hasWebhooks, true);
  if (known === null) return;
  await create({ ...api, survey: known });
  t.equal((await context.db.selectFrom('events').select('id').execute()).length, 2);
  t.equal(api.notified(), 1);
});
