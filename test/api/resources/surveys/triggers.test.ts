/** An app survey without triggers stays a draft. */
import t from 'tap';
import { publishDueSurveys } from '#api/resources/surveys/schedule.ts';
import { addActionClass, startApi, surveyBody } from '#test/support/api-app.ts';

const api = await startApi(t);
const path = '/api/v1/management/surveys';
const triggers = [{ actionClass: { id: (await addActionClass(api, 'Opened')).id } }];
const create = (fields: Record<string, unknown>) =>
  api.manage('POST', path, surveyBody({ type: 'app', ...fields }));
const change = (id: string, fields: object) => api.manage('PUT', `${path}/${id}`, fields);
const refusal = {
  code: 'bad_request',
  message: 'An app survey must have at least one trigger to be set to a non-draft status.',
  details: { triggers: 'Give at least one trigger, or leave the status at draft' },
};

t.test('400: every status but draft needs a trigger', async (t) => {
  for (const status of ['inProgress', 'scheduled', 'paused', 'completed']) {
    for (const fields of [{}, { triggers: [] }, { triggers: null }]) {
      const reply = await create({ status, ...fields });
      t.equal(reply.status, 400, status);
      t.strictSame(reply.json, refusal);
    }
    t.equal((await create({ status, triggers })).status, 200, status);
  }
  t.equal((await create({ status: 'draft' })).status, 200);
  for (const type of ['link', 'website']) t.equal((await create({ type })).status, 200, type);
});

t.test('400: launching a draft without triggers, losing them, or becoming an app survey', async (t) => {
  const draft = (await create({ status: 'draft' })).json.data;
  t.strictSame((await change(draft.id, { status: 'inProgress' })).json, refusal);
  t.equal((await change(draft.id, { name: 'Other' })).status, 200);
  t.equal((await change(draft.id, { status: 'inProgress', triggers })).status, 200);
  t.strictSame((await change(draft.id, { triggers: [] })).json, refusal);
  const link = (await create({ type: 'link' })).json.data;
  t.strictSame((await change(link.id, { type: 'app' })).json, refusal);
});

t.test('a survey whose action class is deleted can be ended and edited, but not started again', async (t) => {
  const other = await addActionClass(api, 'Closed');
  const { id } = (await create({ triggers: [{ actionClass: { id: other.id } }] })).json.data;
  await api.manage('DELETE', `/api/v1/management/action-classes/${other.id}`);
  t.equal((await change(id, { name: 'Other' })).status, 200);
  t.equal((await change(id, { status: 'paused' })).status, 200);
  t.strictSame((await change(id, { status: 'inProgress' })).json, refusal);
  t.equal((await change(id, { status: 'inProgress', triggers })).status, 200);
});

t.test('a date does not start a survey without triggers', async (t) => {
  const publishOn = new Date(api.context.clock() + 1_000).toISOString();
  const idle = (await create({ status: 'draft', publishOn })).json.data;
  const ready = (await create({ status: 'draft', publishOn, triggers })).json.data;
  api.advance(2_000);
  await publishDueSurveys(api.context.db, new Date(api.context.clock()).toISOString());
  t.equal((await api.manage('GET', `${path}/${idle.id}`)).json.data.status, 'draft');
  t.equal((await api.manage('GET', `${path}/${ready.id}`)).json.data.status, 'inProgress');
});

t.test('400: unknown action classes, and those of other workspaces', async (t) => {
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'manage' });
  const foreign = await api.client(
    'POST',
    '/api/v1/management/action-classes',
    { workspaceId: 'ws2', name: 'Foreign', type: 'code', key: 'foreign' },
    { 'x-api-key': key },
  );
  for (const wrong of [
    { id: foreign.json.data.id },
    { name: 'Foreign' },
    'Foreign',
    {},
    { name: 'Nothing' },
  ]) {
    const reply = await create({ triggers: [{ actionClass: wrong }] });
    t.equal(reply.status, 400, JSON.stringify(wrong));
    t.match(reply.json.details, {
      'triggers.0.actionClass': 'This action class does not exist in the workspace',
    });
  }
  for (const known of [{ name: 'Opened' }, 'Opened']) {
    t.equal((await create({ triggers: [{ actionClass: known }] })).status, 200, 'as older clients write it');
  }
});
