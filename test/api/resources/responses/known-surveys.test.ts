/**
 * A process remembers the surveys that were answered lately. Here two of them share a database and hear no news of each
 * other: what the second one changes, the first one must find out by itself.
 */
import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { createKnownSurveys } from '#api/resources/responses/known-surveys.ts';
import { type AnsweredSurvey, findAnsweredSurvey } from '#api/resources/surveys/store.ts';
import { addSurvey, startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import { sharedDatabase } from '#test/support/database.ts';
import { recordingOf } from '#test/support/query-plan.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const openText = (id: string, more: object = {}) => ({ id, type: 'openText', headline: id, ...more });
const webhook = { workspaceId, url: 'https://hooks.example.com/', triggers: ['responseCreated'] };

/** @returns the first process with a survey that it knows, and the second one */
async function start(t: Test, { scopeId = workspaceId, version = 'v1' } = {}) {
  const env = { DATABASE_URL: await sharedDatabase(t), STORAGE_PATH: temporaryFolder(t) };
  let queries: readonly unknown[] = [];
  const first = await startApi({
    env,
    parts: ({ db }) => {
      const recording = recordingOf(db);
      queries = recording.queries;
      return { db: recording.db };
    },
  });
  t.teardown(() => first.close());
  const second = await startApi({ env, random: (bytes) => randomBytes(bytes) });
  t.teardown(() => second.close());
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
  t.equal((await answer()).status, 200, 'from here on it is known');
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
  t.test(`${version}: one statement`, async (t) => {
    const { counted, stored } = await start(t, { version });
    t.strictSame(await counted(), { status: 200, asked: 1 });
    t.strictSame(await counted({ finished: false }), { status: 200, asked: 1 });
    t.equal(await stored(), 3);
  });

  t.test(`${version}: one statement also by the id that older clients know`, async (t) => {
    const { counted } = await start(t, { scopeId: 'env1', version });
    t.strictSame(await counted(), { status: 200, asked: 1 });
  });
}

t.test('one statement of a contact, and of nobody', async (t) => {
  const { counted, db, first } = await start(t);
  const { clock, random } = first.context;
  const now = new Date(clock()).toISOString();
  const { id } = await findOrCreateContact(db, workspaceId, 'u1', now, random);
  t.strictSame(await counted({ userId: 'u1' }), { status: 200, asked: 1 });
  const [{ contactId } = {}] = await db
    .selectFrom('responses')
    .select('contactId')
    .where('contactId', 'is not', null)
    .execute();
  t.equal(contactId, id);
  t.strictSame(await counted({ userId: 'nobody' }), { status: 200, asked: 1 });
});

t.test('the survey is closed meanwhile', async (t) => {
  const { answer, change, stored } = await start(t);
  t.equal((await change({ status: 'paused' })).status, 200);
  t.equal((await answer()).status, 403);
  t.equal(await stored(), 1);
  t.equal((await change({ status: 'inProgress' })).status, 200);
  t.equal((await answer()).status, 200, 'and opened again');
});

t.test('the survey is archived by hand, without a word', async (t) => {
  const { answer, db } = await start(t);
  await db.updateTable('surveys').set({ archivedAt: '2026-01-01T00:00:00.000Z' }).execute();
  t.equal((await answer()).status, 403);
});

t.test('a question is made stricter meanwhile', async (t) => {
  const { answer, change, counted, stored } = await start(t);
  const rules = [{ id: 'a', type: 'minLength', params: { min: 3 } }];
  await change({ questions: [openText('q1', { validation: { rules } })] });
  t.equal((await answer()).status, 400);
  t.equal(await stored(), 1);
  t.strictSame(await counted({ data: { q1: 'long enough' } }), { status: 200, asked: 3 });
  t.strictSame(await counted({ data: { q1: 'long enough' } }), { status: 200, asked: 1 });
});

t.test('a question is made less strict meanwhile', async (t) => {
  const { answer, change } = await start(t);
  t.equal((await answer({ data: {} })).status, 400, 'it is required');
  t.equal((await change({ questions: [openText('q1', { required: false })] })).status, 200);
  t.equal((await answer({ data: {} })).status, 200);
});

t.test('what is refused is refused by the same survey again, and it stays known', async (t) => {
  const { answer, counted } = await start(t);
  const reply = await answer({ data: {} });
  t.match(reply.json, {
    code: 'bad_request',
    details: { 'response.data.q1': 'This question needs an answer' },
  });
  t.strictSame(await counted({ data: {} }), { status: 400, asked: 2 });
  t.strictSame(await counted(), { status: 200, asked: 1 });
});

t.test('the survey is deleted meanwhile', async (t) => {
  const { answer, second, survey } = await start(t);
  await second.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  const { status, json } = await answer();
  t.equal(status, 404);
  t.match(json.message, /Survey/);
});

for (const version of ['v1', 'v2']) {
  t.test(`${version}: the workspace is deleted meanwhile`, async (t) => {
    const { answer, db } = await start(t, { version });
    await db.deleteFrom('workspaces').where('id', '=', workspaceId).execute();
    const { status, json } = await answer();
    t.equal(status, 404);
    t.match(json.message, /Workspace/);
    t.match((await answer({ data: {} })).json.message, /Workspace/, 'whatever else is wrong');
  });

  t.test(`${version}: the workspace loses the id of older clients`, async (t) => {
    const { answer, db, stored } = await start(t, { scopeId: 'env1', version });
    await db.updateTable('workspaces').set({ legacyEnvironmentId: null }).execute();
    t.equal((await answer()).status, 404);
    t.equal(await stored(), 1);
  });
}

t.test('a webhook is made meanwhile', async (t) => {
  const { answer, db, second } = await start(t);
  await second.manage('POST', '/api/v1/webhooks', webhook);
  t.equal((await answer()).status, 200);
  t.equal((await db.selectFrom('events').select('id').execute()).length, 2);
  t.equal((await answer()).status, 200);
  t.equal((await db.selectFrom('events').select('id').execute()).length, 4, 'and of the next one');
});

t.test('from now on so many responses end the survey', async (t) => {
  const { answer, change, stored } = await start(t);
  await change({ autoComplete: 2 });
  t.equal((await answer()).status, 200);
  t.equal((await answer()).status, 403);
  t.equal(await stored(), 2);
});

t.test('a token of reCAPTCHA is asked about once', async (t) => {
  let asked = 0;
  const recaptcha = {
    siteKey: 'site',
    verify: async () => {
      asked += 1;
      return asked < 3;
    },
  };
  const api = await startApi({ parts: () => ({ recaptcha }) });
  t.teardown(() => api.close());
  const { id } = await addSurvey(api, { recaptcha: { enabled: true, threshold: 0.5 } });
  const send = () =>
    api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
      ...{ surveyId: id, finished: true, data: { q1: 'x' }, recaptchaToken: 'token' },
    });
  for (const status of [200, 200, 400]) t.equal((await send()).status, status);
  t.equal(asked, 3);
});

t.test('what is kept is bounded, and dropped by the news', async (t) => {
  const api = await startApi();
  t.teardown(() => api.close());
  const made = await findAnsweredSurvey(api.context.db, (await addSurvey(api)).id);
  if (made === null) throw new Error('no survey');
  const one = (id: string, more: Partial<AnsweredSurvey> = {}): AnsweredSurvey => ({ ...made, id, ...more });
  let now = 0;
  const known = createKnownSurveys({ clock: () => now, entriesMax: 3, lengthMax: 100 });
  const has = (...ids: string[]) => ids.filter((id) => known.find('w', id) !== null).join('');
  for (const id of ['a', 'b', 'c', 'd']) known.keep('w', one(id, { documentLength: 10 }));
  t.equal(has('a', 'b', 'c', 'd'), 'bcd', 'the first one goes');
  known.keep('w', one('e', { documentLength: 90 }));
  t.equal(has('b', 'c', 'd', 'e'), 'de', 'so do as many as do not fit beside it');
  known.keep('w', one('f', { documentLength: 101 }));
  t.equal(has('d', 'e', 'f'), '', 'one that is larger than all is not kept');
  t.notOk(known.knowsScope('w'));

  known.keep('w', one('a', { documentLength: 60 }));
  known.keep('w', one('a', { documentLength: 60 }));
  t.equal(has('a'), 'a', 'what is kept again counts once');
  known.forget('w', 'a');
  t.notOk(known.knowsScope('w'));

  for (const scopeId of ['w', 'e', 'x']) known.keep(scopeId, one('a', { documentLength: 1 }));
  known.purge({ workspaceId: 'w', environmentId: 'e' });
  t.strictSame(['w', 'e', 'x'].map(known.knowsScope), [false, false, true]);
  now = 5 * 60_000;
  t.equal(known.find('x', 'a'), null, 'nothing is kept for longer than five minutes');
  t.notOk(known.knowsScope('x'));

  known.keep('x', one('a'));
  api.context.states.alsoPurge(known);
  api.context.states.purge({ workspaceId: 'x', environmentId: 'y' });
  t.notOk(known.knowsScope('x'), 'with the state of its workspace');
  known.keep('x', one('a'));
  api.context.states.purgeAll();
  t.notOk(known.knowsScope('x'));
});
