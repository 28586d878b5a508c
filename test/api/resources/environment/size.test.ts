/** The state of a workspace is bounded, because anybody may ask for it. */
import t, { type Test } from 'tap';
import { type Reply, startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import type { Json } from '#test/support/json.ts';

const STATE_BYTES_MAX = 8_388_608;
const path = `/api/v1/client/${workspaceId}/environment`;
const surveys = '/api/v1/management/surveys';

const question = (bytes: number) => ({
  id: 'q1',
  type: 'openText',
  headline: { default: 'x'.repeat(bytes) },
});
const large = (fields: Record<string, unknown> = {}) =>
  surveyBody({ type: 'website', questions: [question(950_000)], ...fields });
const idsOf = (reply: Reply): readonly string[] => reply.json.data.surveys.map(({ id }: Json) => id);

async function start(t: Test) {
  const api = await startApi(t);
  const create = async (fields: Record<string, unknown> = {}): Promise<Json> => {
    api.advance(1);
    const reply = await api.manage('POST', surveys, large(fields));
    return reply.status === 200 ? reply.json.data : reply.json;
  };
  return {
    api,
    create,
    change: (id: string, fields: object) => api.manage('PUT', `${surveys}/${id}`, fields),
  };
}

t.test('400: a survey that does not fit into the state cannot go live', async (t) => {
  const { api, create, change } = await start(t);
  const first = await create();
  t.ok((await create()).id);
  for (const fields of [
    {},
    { status: 'scheduled' },
    { status: 'draft', publishOn: '2026-03-01T00:00:00.000Z' },
  ]) {
    const refused = await create(fields);
    t.match(refused, { code: 'bad_request', details: { status: /2097152 bytes/ } }, JSON.stringify(fields));
  }
  t.equal((await change(first.id, { name: 'Same size' })).status, 200, 'what is live may be edited');
  t.ok((await create({ type: 'link' })).id, 'links do not count');
  const draft = await create({ status: 'draft' });
  t.equal((await change(draft.id, { status: 'inProgress' })).status, 400);
  t.equal((await change(first.id, { status: 'paused' })).status, 200);
  t.equal((await change(draft.id, { status: 'inProgress' })).status, 200, 'there is room again');
  const state = await api.client('GET', path);
  t.equal(idsOf(state).length, 2);
  t.ok(state.text.length <= STATE_BYTES_MAX);
});

t.test('403: the action classes of a workspace are bounded in bytes', async (t) => {
  const { api } = await start(t);
  const urlFilters = Array.from({ length: 100 }, () => ({ rule: 'contains', value: 'x'.repeat(2_000) }));
  const body = (name: string, filters = urlFilters) => ({
    ...{ workspaceId, name, type: 'noCode' },
    noCodeConfig: { type: 'pageView', urlFilters: filters },
  });
  const url = '/api/v1/management/action-classes';
  const make = (name: string, filters = urlFilters) => {
    api.advance(1);
    return api.manage('POST', url, body(name, filters));
  };
  const first = await make('1');
  t.equal(first.status, 200);
  t.equal((await make('2')).status, 200);
  const refused = await make('3');
  t.equal(refused.status, 403);
  t.match(refused.json.message, /524288 bytes/);
  const small = await make('3', []);
  t.equal(small.status, 200);
  t.equal((await api.manage('PUT', `${url}/${small.json.data.id}`, body('3'))).status, 403);

  const { noCodeConfig } = body('');
  await api.context.db
    .updateTable('actionClasses')
    .set({ noCodeConfig: JSON.stringify(noCodeConfig) })
    .execute();
  t.equal(
    (await api.manage('PUT', `${url}/${first.json.data.id}`, body('1', []))).status,
    200,
    'it may shrink',
  );
});
