/**
 * A process caches surveys that were answered recently. Here two processes share a database without change
 * notifications, so the first must notice changes by the second one itself.
 */
import t, { type Test } from 'tap';
import { createSurveyReader } from '#api/resources/responses/survey-reader.ts';
import { addSurvey, countingRandom, startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import { sharedDatabase } from '#test/support/database.ts';
import { startRecordedApi } from '#test/support/query-plan.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const openText = (id: string, more: object = {}) => ({ id, type: 'openText', headline: id, ...more });
const webhook = { workspaceId, url: 'https://hooks.example.com/', triggers: ['responseCreated'] };

/** @returns the first process, which has cached a survey, and the second one */
async function start(t: Test, { scopeId = workspaceId, version = 'v1' } = {}) {
  const env = { DATABASE_URL: await sharedDatabase(t), STORAGE_PATH: temporaryFolder(t) };
  const { api: first, queries } = await startRecordedApi(t, { env });
  const second = await startApi(t, { env, random: countingRandom('second') });
  const { db } = second.context;
  await db
    .updateTable('workspaces')
    .set({ legacyEnvironmentId: 'env1' })
    .where('id', '=', workspaceId)
    .execute();
  const survey = await addSurvey(second, { questions: [openText('q1')], hiddenFields: { enabled: true } });
  const answer = (body: object = {}) =>
    first.client('POST', `/api/${version}/client/${scopeId}/responses`, {
      ...{ surveyId: survey.id, finished: true, data: { q1: 'x' } },
      ...body,
    });
  t.equal((await answer()).status, 200, 'the survey is cached now');
  const counted = async (body: object = {}) => {
    const before = queries.length;
    const reply = await answer(body);
    return { status: reply.status, asked: queries.length - before };
  };
  const change = (body: object) =>
    second.manage('PUT', `/api/v1/management/surveys/${survey.id}`, { ...surveyBody(), ...body });
  const stored = async (): Promise<number> =>
    (await db.selectFrom('responses').select('id').where('surveyId', '=', survey.id).execute()).length;
  return { first, second, db, survey, answer, counted, change, stored };
}

for (const version of ['v1', 'v2']) {
  t.test(`${version}: one statement inserts a response`, async (t) => {
    const { counted, stored } = await start(t, { version });
    t.strictSame(await counted(), { status: 200, asked: 1 });
    t.strictSame(await counted({ finished: false }), { status: 200, asked: 1 });
    t.equal(await stored(), 3);
  });

  t.test(`${version}: one statement also with the id for older clients`, async (t) => {
    const { counted } = await start(t, { scopeId: 'env1', version });
    t.strictSame(await counted(), { status: 200, asked: 1 });
  });
}

t.test('403: the survey was closed meanwhile', async (t) => {
  const { answer, change, stored } = await start(t);
  t.equal((await change({ status: 'paused' })).status, 200);
  t.equal((await answer()).status, 403);
  t.equal(await stored(), 1);
  t.equal((await change({ status: 'inProgress' })).status, 200);
  t.equal((await answer()).status, 200, 'accepted when it is open again');
});

t.test('403: the survey was ended in the database, without a notification', async (t) => {
  const { answer, db } = await start(t);
  await db.updateTable('surveys').set({ status: 'completed' }).execute();
  t.equal((await answer()).status, 403);
});

/** A question that takes only files, and refuses the answers of the tests. */
const forFiles = { questions: [{ id: 'q1', type: 'fileUpload', headline: 'q1', allowMultipleFiles: true }] };

t.test('400: a question became stricter meanwhile; 200: it became less strict', async (t) => {
  const { answer, change, counted, stored } = await start(t);
  await change(forFiles);
  t.equal((await answer()).status, 400);
  t.equal(await stored(), 1);
  t.strictSame(await counted({ data: { q1: 'skipped' } }), { status: 200, asked: 1 });
  t.equal((await change({ questions: [openText('q1')] })).status, 200);
  t.equal((await answer()).status, 200);
});

t.test('a refused response is refused again without reading the survey', async (t) => {
  const { answer, change, counted } = await start(t);
  await change(forFiles);
  t.match((await answer()).json, { code: 'bad_request', message: 'Invalid file upload response' });
  t.strictSame(await counted(), { status: 400, asked: 1 });
  t.strictSame(await counted({ data: { q1: 'skipped' } }), { status: 200, asked: 1 });
});

t.test('404: the survey was deleted meanwhile', async (t) => {
  const { answer, second, survey } = await start(t);
  await second.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  const { status, json } = await answer();
  t.equal(status, 404);
  t.match(json.message, /Survey/);
});

for (const version of ['v1', 'v2']) {
  t.test(`404 ${version}: the workspace was deleted meanwhile`, async (t) => {
    const { answer, db } = await start(t, { version });
    await db.deleteFrom('workspaces').where('id', '=', workspaceId).execute();
    const { status, json } = await answer();
    t.equal(status, 404);
    t.match(json.message, /Workspace/);
    t.match((await answer({ data: {} })).json.message, /Workspace/, 'reported before other mistakes');
  });

  t.test(`404 ${version}: the workspace has lost the id for older clients`, async (t) => {
    const { answer, db, stored } = await start(t, { scopeId: 'env1', version });
    await db.updateTable('workspaces').set({ legacyEnvironmentId: null }).execute();
    t.equal((await answer()).status, 404);
    t.equal(await stored(), 1);
  });
}

t.test('a webhook that was created meanwhile gets the event', async (t) => {
  const { answer, db, second } = await start(t);
  await second.manage('POST', '/api/v1/webhooks', webhook);
  t.equal((await answer()).status, 200);
  t.equal((await db.selectFrom('events').select('id').execute()).length, 2);
  t.equal((await answer()).status, 200);
  t.equal((await db.selectFrom('events').select('id').execute()).length, 4, 'the next one has events too');
});

t.test('autoComplete that was switched on meanwhile counts earlier responses', async (t) => {
  const { answer, change, stored } = await start(t);
  await change({ autoComplete: 2 });
  t.equal((await answer()).status, 200);
  t.equal((await answer()).status, 403);
  t.equal(await stored(), 2);
});

t.test('verifies a reCAPTCHA token once', async (t) => {
  let asked = 0;
  const recaptcha = {
    siteKey: 'site',
    verify: async () => {
      asked += 1;
      return asked < 3;
    },
  };
  const api = await startApi(t, { parts: () => ({ recaptcha }) });
  const { id } = await addSurvey(api, { recaptcha: { enabled: true, threshold: 0.5 } });
  const send = () =>
    api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
      ...{ surveyId: id, finished: true, data: { q1: 'x' }, recaptchaToken: 'token' },
    });
  for (const status of [200, 200, 400]) t.equal((await send()).status, status);
  t.equal(asked, 3);
});

t.test('memory is bounded in entries and in bytes', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const ids: string[] = [];
  for (let i = 0; i < 4; i += 1) ids.push((await addSurvey(api)).id);
  const [one = ''] = ids;
  const length = (await createSurveyReader(db).read(one))?.documentLength ?? 0;
  const remembered = async (bounds: object, ...read: readonly string[]) => {
    const surveys = createSurveyReader(db, bounds);
    for (const id of read) await surveys.read(id);
    return ids.filter((id) => surveys.last(id) !== null);
  };
  t.strictSame(await remembered({ entriesMax: 3 }, ...ids), ids.slice(1), 'drops the oldest survey');
  t.strictSame(await remembered({ lengthMax: 2 * length }, ...ids), ids.slice(2));
  t.strictSame(await remembered({ lengthMax: length - 1 }, one), [], 'too large to be cached');
  t.strictSame(await remembered({ lengthMax: length }, one, one), [one], 'counts a survey once');
  await db.updateTable('surveys').set({ updatedAt: '2026-01-02T00:00:00.000Z' }).execute();
  t.strictSame(await remembered({ lengthMax: length }, one, one), [one]);
});

t.test('drops a deleted survey', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const { id } = await addSurvey(api);
  const surveys = createSurveyReader(db);
  t.equal(await surveys.read(id), surveys.last(id));
  await db.deleteFrom('surveys').execute();
  t.equal(await surveys.read(id), null);
  t.equal(surveys.last(id), null);
});
