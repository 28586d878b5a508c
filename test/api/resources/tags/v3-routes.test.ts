/** v3 lists, renames, deletes and merges tags for people who are logged in. */
import t from 'tap';
import { addSurvey, publicUrl, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { type Browser, logInOwner } from '#test/support/login.ts';
import { addTag } from '#test/support/tags.ts';

const url = '/api/v3/tags';

async function start(t: {
  teardown(close: () => Promise<void>): void;
}): Promise<{ api: TestApi; browser: Browser; tag: Tag; responses: string[] }> {
  const api = await startApi(t);
  const browser = await logInOwner(api);
  const survey = await addSurvey(api);
  const responses: string[] = [];
  for (let i = 0; i < 3; i++) {
    const body = { surveyId: survey.id, data: { q1: 'x' }, finished: true };
    responses.push((await api.manage('POST', '/api/v1/management/responses', body)).json.data.id);
  }
  const tag: Tag = (name, ...on) => addTag(api, name, ...on);
  return { api, browser, tag, responses };
}

type Tag = (name: string, ...responses: string[]) => Promise<string>;

const tagsOf = async (api: TestApi, response: string | undefined): Promise<string[]> =>
  (await api.manage('GET', `/api/v1/management/responses/${response}`)).json.data.tags.map(
    ({ name }: { name: string }) => name,
  );

t.test('200: the list, by name, with the number of responses', async (t) => {
  const { api, browser, tag, responses } = await start(t);
  const [one = '', two = ''] = responses;
  const bug = await tag('Bug', one, two);
  const urgent = await tag('Urgent', one);
  await api.context.db
    .insertInto('tags')
    .values({ id: 'unused', workspaceId, name: 'Unused', createdAt: 'x', updatedAt: 'x' })
    .execute();
  const reply = await browser.call('GET', `${url}?workspaceId=${workspaceId}`);
  t.equal(reply.status, 200);
  t.strictSame(Object.keys(reply.json), ['data'], 'the reply has no meta');
  t.strictSame(
    reply.json.data.map(({ id, name, count }: Record<string, unknown>) => [id, name, count]),
    [
      [bug, 'Bug', 2],
      ['unused', 'Unused', 0],
      [urgent, 'Urgent', 1],
    ],
  );
  t.strictSame(Object.keys(reply.json.data[0]).sort(), [
    'count',
    'createdAt',
    'id',
    'name',
    'updatedAt',
    'workspaceId',
  ]);
  const unknown = await browser.call('GET', `${url}?workspaceId=${workspaceId}&limit=3`);
  t.match(unknown.json.invalid_params, [{ name: 'limit', code: 'unsupported_field' }]);
});

t.test('200: renames; 422: to a taken name; 400: to an empty one', async (t) => {
  const { api, browser, tag, responses } = await start(t);
  const [one = ''] = responses;
  const id = await tag('Bug', one);
  await tag('Urgent', one);
  api.advance(1000);
  const renamed = await browser.call('PATCH', `${url}/${id}`, { name: '  Defect ' });
  t.equal(renamed.status, 200, renamed.text);
  t.match(renamed.json.data, {
    id,
    name: 'Defect',
    workspaceId,
    count: 1,
    updatedAt: new Date(api.context.clock()).toISOString(),
  });
  t.equal((await browser.call('PATCH', `${url}/${id}`, { name: 'Defect' })).status, 200, 'its own name');
  const taken = await browser.call('PATCH', `${url}/${id}`, { name: 'Urgent' });
  t.equal(taken.status, 422);
  t.equal(taken.json.code, 'unprocessable_content');
  t.equal(taken.json.invalid_params[0].name, 'name');
  for (const body of [{ name: '' }, { name: ' \n' }, { name: 'x'.repeat(256) }, { name: 1 }, {}]) {
    const refused = await browser.call('PATCH', `${url}/${id}`, body);
    t.equal(refused.status, 400, JSON.stringify(body).slice(0, 40));
    t.equal(refused.json.invalid_params[0].name, 'name');
  }
  t.equal((await browser.call('PATCH', `${url}/${id}`, { name: 'x'.repeat(255) })).status, 200);
  t.equal((await browser.call('PATCH', `${url}/${id}`, { name: 'x', color: 'red' })).status, 400);
});

t.test('422: two concurrent calls for one name, and one gets it', async (t) => {
  const { browser, tag, responses } = await start(t);
  const ids = [await tag('a', ...responses), await tag('b', ...responses)];
  const replies = await Promise.all(ids.map((id) => browser.call('PATCH', `${url}/${id}`, { name: 'c' })));
  t.strictSame(replies.map(({ status }) => status).sort(), [200, 422]);
});

t.test('200: deleting a tag removes it from all responses', async (t) => {
  const { api, browser, tag, responses } = await start(t);
  const id = await tag('Bug', ...responses);
  await tag('Urgent', ...responses);
  const reply = await browser.call('DELETE', `${url}/${id}`);
  t.equal(reply.status, 200);
  t.strictSame(reply.json, { data: { id } });
  for (const response of responses) t.strictSame(await tagsOf(api, response), ['Urgent']);
  t.equal((await browser.call('DELETE', `${url}/${id}`)).status, 403);
});

t.test('200: merging gives every response the other tag, once', async (t) => {
  const { api, browser, tag, responses } = await start(t);
  const [one = '', two = '', three = ''] = responses;
  const from = await tag('Bug', one, two);
  const into = await tag('Defect', two, three);
  const reply = await browser.call('POST', `${url}/${from}/merge`, { newTagId: into });
  t.equal(reply.status, 200, reply.text);
  t.strictSame(reply.json, { data: { id: into } });
  for (const response of responses) t.strictSame(await tagsOf(api, response), ['Defect']);
  const list = await browser.call('GET', `${url}?workspaceId=${workspaceId}`);
  t.match(list.json.data, [{ id: into, count: 3 }]);
  t.equal(list.json.data.length, 1);
  const self = await browser.call('POST', `${url}/${into}/merge`, { newTagId: into });
  t.equal(self.status, 400);
  t.match(self.json.invalid_params, [{ name: 'newTagId' }]);
  t.equal((await browser.call('POST', `${url}/${into}/merge`, {})).status, 400);
});

t.test('two merges at once: no response loses its tag', async (t) => {
  for (const plan of [
    [
      ['a', 'b'],
      ['b', 'a'],
    ],
    [
      ['a', 'b'],
      ['b', 'c'],
    ],
    [
      ['a', 'c'],
      ['b', 'c'],
    ],
    [
      ['a', 'b'],
      ['a', 'c'],
    ],
  ] as const) {
    const { api, browser, tag, responses } = await start(t);
    const [one = '', two = '', three = ''] = responses;
    const ids = { a: await tag('a', one), b: await tag('b', two), c: await tag('c', three) };
    const replies = await Promise.all(
      plan.map(([from, into]) => browser.call('POST', `${url}/${ids[from]}/merge`, { newTagId: ids[into] })),
    );
    const label = JSON.stringify(plan);
    t.ok(
      replies.some(({ status }) => status === 200),
      `${label}: at least one merge succeeds`,
    );
    t.ok(replies.every(({ status }) => status === 200 || status === 403));
    for (const response of responses) t.equal((await tagsOf(api, response)).length, 1, label);
  }
});

t.test('merges and deletes a tag on more responses than one slice', async (t) => {
  const { api, browser, tag, responses } = await start(t);
  const { db } = api.context;
  const [first = ''] = responses;
  const from = await tag('Bug', first);
  const into = await tag('Defect', first);
  const row = await db.selectFrom('responses').selectAll().where('id', '=', first).executeTakeFirstOrThrow();
  for (let i = 0; i < 450; i++) {
    await db
      .insertInto('responses')
      .values({ ...row, id: `r${i}` })
      .execute();
    await db
      .insertInto('responseTags')
      .values({ responseId: `r${i}`, tagId: from })
      .execute();
  }
  t.equal((await browser.call('POST', `${url}/${from}/merge`, { newTagId: into })).status, 200);
  const { data } = (await browser.call('GET', `${url}?workspaceId=${workspaceId}`)).json;
  const counts = Object.fromEntries(
    data.map(({ name, count }: { name: string; count: number }) => [name, count]),
  );
  t.strictSame(counts, { Defect: 451 });
  t.equal((await browser.call('DELETE', `${url}/${into}`)).status, 200);
  const left = await db.selectFrom('responseTags').select('tagId').where('tagId', '=', into).execute();
  t.strictSame(left, []);
});

t.test('401: an API key is not enough, with or without an invalid session', async (t) => {
  const { api, tag, responses } = await start(t);
  const id = await tag('Bug', ...responses);
  for (const [method, path, body] of [
    ['GET', `${url}?workspaceId=${workspaceId}`, undefined],
    ['PATCH', `${url}/${id}`, { name: 'x' }],
    ['DELETE', `${url}/${id}`, undefined],
    ['POST', `${url}/${id}/merge`, { newTagId: 'x' }],
  ] as const) {
    const reply = await api.manage(method, path, body);
    t.equal(reply.status, 401, method);
    t.equal(reply.json.code, 'not_authenticated');
    t.notOk('details' in reply.json);
  }
});

t.test('403: the same for tags of others and for unknown ones', async (t) => {
  const { api, browser, tag, responses } = await start(t);
  const { db } = api.context;
  const id = await tag('Bug', ...responses);
  await db
    .insertInto('organizations')
    .values({ id: 'other', name: 'Other', isOperators: 0, createdAt: 'x', updatedAt: 'x' })
    .execute();
  await api.addWorkspace('foreign');
  await db.updateTable('workspaces').set({ organizationId: 'other' }).where('id', '=', 'foreign').execute();
  await api.addWorkspace('own2');
  for (const [tagId, ws] of [
    ['theirs', 'foreign'],
    ['ours2', 'own2'],
  ] as const) {
    await db
      .insertInto('tags')
      .values({ id: tagId, workspaceId: ws, name: 'Bug', createdAt: 'x', updatedAt: 'x' })
      .execute();
  }
  for (const [method, path, body] of [
    ['GET', `${url}?workspaceId=foreign`, undefined],
    ['GET', `${url}?workspaceId=unknown`, undefined],
    ['PATCH', `${url}/theirs`, { name: 'x' }],
    ['PATCH', `${url}/unknown`, { name: 'x' }],
    ['DELETE', `${url}/theirs`, undefined],
    ['POST', `${url}/theirs/merge`, { newTagId: id }],
    ['POST', `${url}/${id}/merge`, { newTagId: 'theirs' }],
    ['POST', `${url}/${id}/merge`, { newTagId: 'unknown' }],
    ['POST', `${url}/${id}/merge`, { newTagId: 'ours2' }],
  ] as const) {
    const reply = await browser.call(method, path, body);
    t.equal(reply.status, 403, `${method} ${path}`);
    t.equal(reply.json.detail, 'You are not authorized to access this resource');
  }
  for (const response of responses) t.strictSame(await tagsOf(api, response), ['Bug']);
  const foreignPage = await browser.call(
    'PATCH',
    `${url}/${id}`,
    { name: 'x' },
    { origin: 'https://evil.example' },
  );
  t.equal(foreignPage.status, 403);
  t.equal((await browser.call('PATCH', `${url}/${id}`, { name: 'x' }, { origin: publicUrl })).status, 200);
});

t.test('403: people who do not run the organization', async (t) => {
  const { api, browser, tag, responses } = await start(t);
  const id = await tag('Bug', ...responses);
  await api.context.db.updateTable('memberships').set({ role: 'member' }).execute();
  t.equal((await browser.call('GET', `${url}?workspaceId=${workspaceId}`)).status, 403);
  t.equal((await browser.call('PATCH', `${url}/${id}`, { name: 'x' })).status, 403);
  t.equal((await browser.call('DELETE', `${url}/${id}`)).status, 403);
  for (const response of responses) t.strictSame(await tagsOf(api, response), ['Bug']);
});
