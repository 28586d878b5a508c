/** The state of a workspace is bounded, because anybody may ask for it. */
import { Writable } from 'node:stream';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { type Reply, startApi, surveyBody, type TestApi, workspaceId } from '#test/support/api-app.ts';
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

async function start(t: Test, env: Record<string, string> = {}) {
  const lines: Json[] = [];
  const stream = new Writable({
    write(line, _encoding, done) {
      lines.push(JSON.parse(String(line)));
      done();
    },
  });
  const api = await startApi(t, { env, log: pino({ level: 'warn' }, stream) });
  const create = async (fields: Record<string, unknown> = {}): Promise<Json> => {
    api.advance(1);
    const reply = await api.manage('POST', surveys, large(fields));
    return reply.status === 200 ? reply.json.data : reply.json;
  };
  return {
    api,
    lines,
    create,
    change: (id: string, fields: object) => api.manage('PUT', `${surveys}/${id}`, fields),
  };
}

async function putLive({ context }: TestApi): Promise<void> {
  await context.db.updateTable('surveys').set({ status: 'inProgress' }).execute();
  context.states.purgeAll();
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
  t.ok((await create({ type: 'link' })).id, 'links do not count');
  const draft = await create({ status: 'draft' });
  t.equal((await change(draft.id, { status: 'inProgress' })).status, 400);
  t.equal((await change(first.id, { status: 'paused' })).status, 200);
  t.equal((await change(draft.id, { status: 'inProgress' })).status, 200, 'there is room again');
  const state = await api.client('GET', path);
  t.equal(idsOf(state).length, 2);
  t.ok(state.text.length <= STATE_BYTES_MAX);
});

t.test('more than fits, as after a change in the database, gets a state without the oldest', async (t) => {
  const { api, lines, create, change } = await start(t);
  const ids: string[] = [];
  for (let i = 0; i < 4; i++) ids.unshift((await create({ status: 'draft' })).id);
  await putLive(api);
  const state = await api.client('GET', path);
  t.strictSame(idsOf(state), ids.slice(0, 2), 'the newest are shown');
  t.ok(state.text.length <= STATE_BYTES_MAX);
  t.match(lines, [{ level: 40, workspaceId, leftOut: ids.slice(2) }]);
  const [newest = '', other = ''] = ids;
  t.equal((await change(newest, { name: 'Same size' })).status, 200, 'what is live may be edited');
  t.equal((await change(newest, { questions: [question(950_100)] })).status, 400, 'and does not grow');
  t.equal((await change(other, { questions: [question(10)] })).status, 200, 'and may shrink');
});

t.test('a state is bounded also if its texts take more room than in the database', async (t) => {
  const { api, lines, create } = await start(t, {
    PUBLIC_URL: `https://feedback.example.com/${'x'.repeat(200)}`,
  });
  const choices = Array.from({ length: 1_000 }, (_, i) => ({
    id: `c${i}`,
    imageUrl: '/storage/ws1/public/x.png',
  }));
  const questions = Array.from({ length: 5 }, (_, i) => ({
    ...{ id: `q${i}`, type: 'pictureSelection', headline: 'Which?', allowMulti: false, choices },
  }));
  const older = await create({ questions });
  const newer = await create({ questions });
  const state = await api.client('GET', path);
  t.strictSame(idsOf(state), [newer.id]);
  t.ok(state.text.length <= STATE_BYTES_MAX);
  t.match(lines, [{ workspaceId, leftOut: [older.id] }]);
});

t.test('403: the action classes of a workspace are bounded in bytes', async (t) => {
  const { api, lines } = await start(t);
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
  await api.context.db
    .updateTable('actionClasses')
    .set({ noCodeConfig: JSON.stringify(noCodeConfig) })
    .execute();
  api.context.states.purgeAll();
  const state = await api.client('GET', path);
  t.strictSame(
    state.json.data.actionClasses.map(({ name }: Json) => name),
    ['1', '2'],
  );
  t.match(lines, [{ workspaceId, leftOut: [small.json.data.id] }]);
});

t.test('a survey that is left out still takes responses', async (t) => {
  const { api, create } = await start(t);
  const { id } = await create({ status: 'draft' });
  await create({ status: 'draft' });
  await create({ status: 'draft' });
  await putLive(api);
  t.notOk(idsOf(await api.client('GET', path)).includes(id));
  const reply = await api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    ...{ surveyId: id, finished: true, data: { q1: 'Yes' } },
  });
  t.equal(reply.status, 200);
});
