import t from 'tap';
import { actionClasses } from '#api/resources/action-classes/store.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const { db, random, clock } = api.context;
const path = '/api/v1/management/action-classes';
await api.addWorkspace('ws2', 'env2');
const both = await api.addKey({ [workspaceId]: 'manage', ws2: 'manage' });
const now = (): string => new Date(clock()).toISOString();

const code = (fields: Record<string, unknown> = {}) => ({
  workspaceId,
  name: 'Sign up',
  type: 'code',
  key: 'signup',
  ...fields,
});
const send = (body: unknown) => api.manage('POST', path, body);
const add = async (fields: Record<string, unknown>) => (await send(code(fields))).json.data;

t.test('POST 200: noCodeConfig is stored as sent', async (t) => {
  for (const [i, noCodeConfig] of [
    { type: 'click', urlFilters: [], urlFiltersConnector: 'and', elementSelector: { innerHtml: 'Buy' } },
    { type: 'pageDwell', urlFilters: [{ value: '^/a+$', rule: 'matchesRegex' }], timeInSeconds: 3_600 },
    { type: 'newer than this code', more: [1, null] },
  ].entries()) {
    const reply = await send({
      environmentId: workspaceId,
      name: `No code ${i}`,
      type: 'noCode',
      key: 'ignored',
      description: 'Described',
      noCodeConfig,
    });
    t.equal(reply.status, 200, reply.text);
    t.strictSame(reply.json.data.noCodeConfig, noCodeConfig);
    t.match(reply.json.data, { key: null, type: 'noCode', description: 'Described' });
  }
});

t.test('POST 400: reports each mistake with its path', async (t) => {
  const noCode = (config: unknown) => ({ workspaceId, name: 'x', type: 'noCode', noCodeConfig: config });
  const cases: readonly (readonly [unknown, Record<string, unknown>])[] = [
    [{ workspaceId }, { name: 'Required', type: 'Required' }],
    [code({ name: '' }), { name: String }],
    [code({ type: 'automatic' }), { type: 'must be one of code, noCode' }],
    [code({ key: null }), { key: 'Required' }],
    [code({ key: '' }), { key: String }],
    [noCode(null), { noCodeConfig: 'Required' }],
    [noCode('click'), { noCodeConfig: String }],
  ];
  for (const [body, details] of cases) {
    const reply = await send(body);
    t.equal(reply.status, 400, reply.text);
    t.match(reply.json, {
      code: 'bad_request',
      message: 'Fields are missing or incorrectly formatted',
      details,
    });
    t.equal(Object.keys(reply.json.details).length, Object.keys(details).length, reply.text);
  }
});

t.test('POST and PUT 409: a taken name or key', async (t) => {
  const first = await add({ name: 'Taken', key: 'taken' });
  const other = await add({ name: 'Other', key: 'other' });
  const taken: readonly (readonly [Record<string, unknown>, string])[] = [
    [{ name: 'Taken', key: 'new' }, 'Action with name Taken already exists'],
    [{ name: 'New', key: 'taken' }, 'Action with key taken already exists'],
    [{ name: 'Taken', key: 'taken' }, 'Action with key taken already exists'],
  ];
  for (const [fields, message] of taken) {
    for (const reply of [
      await send(code(fields)),
      await api.manage('PUT', `${path}/${other.id}`, code(fields)),
    ]) {
      t.equal(reply.status, 409);
      t.strictSame(reply.json, { code: 'conflict', message, details: {} });
    }
  }
  t.equal(
    (await api.manage('PUT', `${path}/${first.id}`, code({ name: 'Taken', key: 'taken' }))).status,
    200,
    'an update may keep the own name and key',
  );
});

t.test('PUT: absent fields become null; 400 without the workspace, or with another one', async (t) => {
  const made = await add({ name: 'Change me', key: 'change-me', description: 'old' });
  const one = `${path}/${made.id}`;
  t.equal(
    (await api.manage('PUT', one, code({ name: 'Change me', key: 'change-me' }))).json.data.description,
    null,
  );
  t.equal((await api.manage('PUT', one, { name: 'x' })).json.message, 'workspaceId must be provided');
  const moved = await api.client('PUT', one, code({ workspaceId: 'ws2' }), { 'x-api-key': both });
  t.equal(moved.json.message, 'Action class is part of another workspace');
});

t.test('DELETE 200: surveys lose the trigger, and SDKs see it at once', async (t) => {
  const made = await add({ name: 'Gone', key: 'gone' });
  const survey = await addSurvey(api, { type: 'app', triggers: [{ actionClass: { id: made.id } }] });
  const names = async (): Promise<string[]> => {
    const { data } = (await api.client('GET', `/api/v1/client/${workspaceId}/environment`)).json;
    return data.actionClasses.map(({ name }: { name: string }) => name);
  };
  t.ok((await names()).includes('Gone'), 'the write purged the cached state');
  await api.manage('DELETE', `${path}/${made.id}`);
  t.notOk((await names()).includes('Gone'));
  t.strictSame((await api.manage('GET', `/api/v1/management/surveys/${survey.id}`)).json.data.triggers, []);
});

t.test('400: built-in classes cannot be changed', async (t) => {
  const row = {
    workspaceId,
    createdAt: now(),
    updatedAt: now(),
    description: null,
    key: null,
    noCodeConfig: null,
  };
  const builtIn = { ...row, id: newId(random), name: 'New Session', type: 'automatic' as const };
  await actionClasses.insert(db, builtIn);
  t.equal((await api.manage('GET', `${path}/${builtIn.id}`)).json.data.type, 'automatic');
  const deleted = await api.manage('DELETE', `${path}/${builtIn.id}`);
  t.equal(deleted.status, 400);
  t.equal(deleted.json.message, 'Automatic action classes cannot be deleted');
  t.equal(
    (await api.manage('PUT', `${path}/${builtIn.id}`, code())).json.message,
    'Automatic action classes cannot be updated',
  );
});
