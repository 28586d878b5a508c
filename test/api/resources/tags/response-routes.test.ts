/** The management API lists, adds and removes the tags of a response. */
import t from 'tap';
import { RESPONSE_TAGS_MAX, TAGS_MAX } from '#api/content-limits.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
await api.addWorkspace('ws2', 'env2');
const { db } = api.context;
const management = '/api/v1/management';
const survey = await addSurvey(api);

async function addResponse(surveyId: string = survey.id): Promise<string> {
  const body = { surveyId, data: { q1: 'x' }, finished: false };
  return (await api.manage('POST', `${management}/responses`, body)).json.data.id;
}
const add = (id: string, body: unknown) => api.manage('POST', `${management}/responses/${id}/tags`, body);

t.test('200: giving a response an unknown tag creates it, and all responses share it', async (t) => {
  const [one, two] = [await addResponse(), await addResponse()];
  const reply = await add(one, { name: ' Bug ' });
  t.equal(reply.status, 200, reply.text);
  const { data } = reply.json;
  t.match(data, {
    name: 'Bug',
    workspaceId,
    environmentId: workspaceId,
    createdAt: String,
    updatedAt: String,
  });
  t.strictSame((await add(two, { name: 'Bug' })).json.data, data);
  t.strictSame((await add(two, { tagId: data.id })).json.data, data, 'adding a tag twice changes nothing');
  await add(two, { name: 'Another' });
  const list = await api.manage('GET', `${management}/responses/${two}/tags`);
  t.strictSame(
    list.json.data.map(({ name }: { name: string }) => name),
    ['Another', 'Bug'],
  );
  t.equal((await api.manage('GET', `/api/v1/responses/${two}/tags`)).status, 404);
});

t.test('replies with tags: list, get, create, update, delete', async (t) => {
  const id = await addResponse();
  const { data: tag } = (await add(id, { name: 'Shown' })).json;
  const url = `${management}/responses`;
  t.strictSame((await api.manage('GET', `${url}/${id}`)).json.data.tags, [tag]);
  const listed = (await api.manage('GET', `${url}?surveyId=${survey.id}`)).json.data;
  t.strictSame(listed.find((response: { id: string }) => response.id === id).tags, [tag]);
  t.strictSame((await api.manage('PUT', `${url}/${id}`, { finished: true })).json.data.tags, [tag]);
  t.strictSame((await api.manage('DELETE', `${url}/${id}`)).json.data.tags, [tag]);
  const left = await db.selectFrom('responseTags').selectAll().where('responseId', '=', id).execute();
  t.strictSame(left, [], 'they are deleted with the response');
});

t.test('200: removes the tag from the response, and keeps the tag', async (t) => {
  const id = await addResponse();
  const { data: tag } = (await add(id, { name: 'Off' })).json;
  const url = `${management}/responses/${id}/tags/${tag.id}`;
  const reply = await api.manage('DELETE', url);
  t.equal(reply.status, 200);
  t.strictSame(reply.json.data, tag);
  t.strictSame((await api.manage('GET', `${management}/responses/${id}`)).json.data.tags, []);
  const again = await api.manage('DELETE', url);
  t.equal(again.status, 404);
  t.match(again.json, { code: 'not_found', details: { resource_type: 'Tag', resource_id: tag.id } });
  t.ok(await db.selectFrom('tags').select('id').where('id', '=', tag.id).executeTakeFirst());
});

t.test('200: the tags of all workspaces that the caller can read, with their counts', async (t) => {
  const [one, two] = [await addResponse(), await addResponse()];
  await add(one, { name: 'Counted' });
  await add(two, { name: 'Counted' });
  const list = await api.manage('GET', `${management}/tags`);
  const counted = list.json.data.find(({ name }: { name: string }) => name === 'Counted');
  t.match(counted, { count: 2, workspaceId, environmentId: workspaceId });
  const page = await api.manage('GET', `${management}/tags?limit=1&skip=1`);
  t.strictSame(page.json.data, [list.json.data[1]]);
  const stranger = await api.addKey({ ws2: 'read' });
  const theirs = await api.client('GET', `${management}/tags`, undefined, { 'x-api-key': stranger });
  t.strictSame(theirs.json.data, []);
});

t.test('400, 404: malformed and unknown tags', async (t) => {
  const id = await addResponse();
  for (const body of [
    {},
    { name: 'a', tagId: 'b' },
    { name: '  ' },
    { name: 'x'.repeat(256) },
    { name: 7 },
    [],
  ]) {
    const reply = await add(id, body);
    t.equal(reply.status, 400, JSON.stringify(body).slice(0, 40));
    t.match(reply.json, { code: 'bad_request', message: String, details: {} });
  }
  await db
    .insertInto('tags')
    .values({ id: 'theirs', workspaceId: 'ws2', name: 'Theirs', createdAt: 'x', updatedAt: 'x' })
    .execute();
  for (const tagId of ['unknown', 'theirs', 'NO']) {
    const reply = await add(id, { tagId });
    t.equal(reply.status, 404, tagId);
    t.match(reply.json.details, { resource_type: 'Tag' });
  }
  t.equal((await add('unknown', { name: 'x' })).status, 404);
});

t.test('401: the method decides which right is needed', async (t) => {
  const id = await addResponse();
  const { data: tag } = (await add(id, { name: 'Guarded' })).json;
  const url = `${management}/responses/${id}/tags`;
  const reader = { 'x-api-key': await api.addKey({ [workspaceId]: 'read' }) };
  const writer = { 'x-api-key': await api.addKey({ [workspaceId]: 'write' }) };
  const stranger = { 'x-api-key': await api.addKey({ ws2: 'manage' }) };
  t.equal((await api.client('GET', url, undefined, reader)).status, 200);
  t.equal((await api.client('POST', url, { name: 'x' }, reader)).status, 401);
  t.equal((await api.client('POST', url, { name: 'x' }, writer)).status, 200);
  t.equal((await api.client('DELETE', `${url}/${tag.id}`, undefined, writer)).status, 401);
  t.equal((await api.client('GET', url, undefined, stranger)).status, 401);
  t.equal((await api.client('GET', url)).status, 401);
});

t.test('two concurrent calls: one tag for one name in each workspace', async (t) => {
  const [one, two] = [await addResponse(), await addResponse()];
  const replies = await Promise.all([one, two, one, two].map((id) => add(id, { name: 'Race' })));
  t.equal(new Set(replies.map(({ json }) => json.data.id)).size, 1);
  const rows = await db.selectFrom('tags').select('id').where('name', '=', 'Race').execute();
  t.equal(rows.length, 1);
  await db
    .insertInto('tags')
    .values({ id: 'elsewhere', workspaceId: 'ws2', name: 'Race', createdAt: 'x', updatedAt: 'x' })
    .execute();
  await t.rejects(
    db
      .insertInto('tags')
      .values({ id: 'double', workspaceId: 'ws2', name: 'Race', createdAt: 'x', updatedAt: 'x' })
      .execute(),
    /unique constraint/i,
  );
});

t.test('403: the maximum of a response, and of a workspace', async (t) => {
  const id = await addResponse();
  for (let i = 0; i < RESPONSE_TAGS_MAX; i++) {
    t.equal((await add(id, { name: `t${i}` })).status, 200);
  }
  const full = await add(id, { name: 'one more' });
  t.equal(full.status, 403);
  t.match(full.json.message, 'remove one first');
  t.notOk(await db.selectFrom('tags').select('id').where('name', '=', 'one more').executeTakeFirst());
  t.equal((await add(id, { name: 't0' })).status, 200, 'a tag that the response already has is accepted');
  const { count } = await db
    .selectFrom('tags')
    .select((select) => select.fn.countAll().as('count'))
    .where('workspaceId', '=', workspaceId)
    .executeTakeFirstOrThrow();
  const more = Array.from({ length: TAGS_MAX - Number(count) }, (_, i) => ({
    id: `m${i}`,
    workspaceId,
    name: `m${i}`,
    createdAt: 'x',
    updatedAt: 'x',
  }));
  await db.insertInto('tags').values(more).execute();
  const other = await addResponse();
  t.equal((await add(other, { name: 'beyond' })).status, 403);
  t.equal((await add(other, { name: 'm0' })).status, 200);
});
