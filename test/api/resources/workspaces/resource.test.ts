/**
 * The resources whose rows belong to a workspace keep the same promises, on v1 and on v2. What only one of them
 * promises is in the test of its routes, and `parallel-writers/limits.test.ts` has their limits.
 */
import t, { type Test } from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

type Fields = Readonly<Record<string, unknown>>;
type Row = Fields & { readonly id: string };

interface Alike {
  readonly name: string;
  readonly version: 'v1' | 'v2';
  readonly url: string;
  /** How a 404 names it. */
  readonly type: string;
  /** The fields of a new row, different for each number. */
  readonly fields: (n: number) => Fields;
  /** Fields of the reply whose values differ from what was sent, without id, workspace and times. */
  readonly defaults: Fields;
  /** A field that only the reply to POST has. */
  readonly once?: string;
  /** The fields that a PUT changes, and those that its body has as well; null if there is no PUT. */
  readonly change: { readonly shown: Fields; readonly ignored?: Fields } | null;
  /** The value by which the list is sorted, after the workspace. Default: `createdAt`. */
  readonly sortedBy?: string;
  /** Whether a key for one workspace need not name it. */
  readonly isWorkspaceOptional?: boolean;
}

const page = { type: 'pageView', urlFilters: [{ value: '/pricing', rule: 'exactMatch' }] };
const url = 'https://hooks.example.com/in?x=1';
const webhook = {
  name: 'webhooks',
  defaults: { name: null, source: 'user', surveyIds: [] },
  once: 'secret',
  isWorkspaceOptional: true,
} satisfies Partial<Alike>;
const alike: readonly Alike[] = [
  {
    name: 'languages',
    version: 'v1',
    url: '/api/v1/management/languages',
    type: 'Language',
    fields: (n) => ({ code: `pt-B${n}`, alias: 'Brasil' }),
    defaults: {},
    change: null,
    sortedBy: 'code',
  },
  {
    name: 'action classes',
    version: 'v1',
    url: '/api/v1/management/action-classes',
    type: 'Action Class',
    fields: (n) => ({ name: `Sign up ${n}`, type: 'code', key: `signup ${n}`, noCodeConfig: page }),
    defaults: { description: null, noCodeConfig: null },
    change: {
      shown: { name: 'Changed', type: 'noCode', key: null, description: null, noCodeConfig: page },
      ignored: { workspaceId },
    },
  },
  {
    name: 'segments',
    version: 'v1',
    url: '/api/v1/management/segments',
    type: 'Segment',
    fields: (n) => ({ title: `Pros ${n}`, description: 'Who pay', isPrivate: true }),
    defaults: { isPrivate: false, filters: [] },
    change: { shown: { title: 'Others' } },
    sortedBy: 'title',
  },
  {
    ...webhook,
    version: 'v1',
    url: '/api/v1/webhooks',
    type: 'Webhook',
    fields: (n) => ({ url: `${url}&n=${n}`, triggers: ['responseCreated'] }),
    change: null,
  },
  {
    ...webhook,
    version: 'v2',
    url: '/api/v2/management/webhooks',
    type: 'webhook',
    fields: (n) => ({ ...webhook.defaults, url: `${url}&n=${n}`, triggers: ['responseFinished'] }),
    change: { shown: { name: 'Other', source: 'zapier' }, ignored: { secret: 'mine' } },
  },
  {
    name: 'contact attribute keys',
    version: 'v1',
    url: '/api/v1/management/contact-attribute-keys',
    type: 'Attribute Key',
    fields: (n) => ({ key: `color_${n}`, name: `Color ${n}`, type: 'custom', isUnique: true }),
    defaults: { description: '', isUnique: false, dataType: 'string' },
    change: { shown: { name: 'Name', description: 'Text' }, ignored: { key: 'new_key', dataType: 'date' } },
  },
  {
    name: 'attribute classes',
    version: 'v1',
    url: '/api/v1/management/attribute-classes',
    type: 'Attribute Class',
    fields: (n) => ({ name: `Favorite Color ${n}`, type: 'code' }),
    defaults: { description: null, archived: false },
    change: null,
  },
  {
    name: 'contact attribute keys',
    version: 'v2',
    url: '/api/v2/management/contact-attribute-keys',
    type: 'attributeKey',
    fields: (n) => ({ key: `seats_${n}`, name: 'Seats', description: 'Bought', dataType: 'number' }),
    defaults: { isUnique: false, type: 'custom' },
    change: {
      shown: { name: 'Size', description: 'Of us' },
      ignored: { key: 'other', dataType: 'date', isUnique: true },
    },
  },
];

for (const resource of alike) {
  t.test(`${resource.name} on ${resource.version}`, (t) => keepsThePromises(t, resource));
}

async function keepsThePromises(t: Test, resource: Alike): Promise<void> {
  const api = await startApi(t, { resolve: async () => ['93.184.215.14'] });
  await api.addWorkspace('ws2');
  const both = { 'x-api-key': await api.addKey({ [workspaceId]: 'manage', ws2: 'manage' }) };
  const { defaults, fields, once, type, url, version } = resource;
  const created = version === 'v1' ? 200 : 201;
  const now = (): string => new Date(api.context.clock()).toISOString();
  const asBoth = (method: 'GET' | 'POST' | 'PUT', to: string, body?: unknown) =>
    api.client(method, to, body, both);
  let count = 0;
  const next = (): number => (count += 1);
  const add = async (): Promise<Row> => {
    const reply = await api.manage('POST', url, { workspaceId, ...fields(next()) });
    const { [once ?? '']: _, ...row } = reply.json.data;
    return row;
  };
  const change = resource.change === null ? null : { ...resource.change.ignored, ...resource.change.shown };
  /** Each method that a row has, with a body that is accepted. */
  const onOne = [
    ['GET', undefined],
    ...(change === null ? [] : ([['PUT', change]] as const)),
    ['DELETE', undefined],
  ] as const;

  await t.test('POST: creates a row, ignores unknown fields, and GET shows the same', async (t) => {
    const n = next();
    const foreign = { id: 'mine', createdAt: 'mine', updatedAt: 'mine', unknown: 'mine' };
    const reply = await api.manage('POST', url, { workspaceId, ...fields(n), ...foreign });
    t.equal(reply.status, created, reply.text);
    const { id } = reply.json.data;
    t.match(id, /^c[0-9a-z]{24}$/);
    const row = {
      id,
      ...fields(n),
      ...defaults,
      environmentId: workspaceId,
      workspaceId,
      createdAt: now(),
      updatedAt: now(),
    };
    const extra = once === undefined ? {} : { [once]: reply.json.data[once] };
    t.strictSame(reply.json, { data: { ...row, ...extra } });
    t.notMatch(reply.text, /mine/);
    t.strictSame((await api.manage('GET', `${url}/${id}`)).json, { data: row });
    const list = (await api.manage('GET', url)).json.data;
    t.strictSame(
      list.filter((one: Row) => one.id === id),
      [row],
    );
  });

  await t.test('PUT 200: changes what the body has, and nothing else', async (t) => {
    if (change === null) return;
    const made = await add();
    api.advance(1_000);
    const reply = await api.manage('PUT', `${url}/${made.id}`, { ...change, unknown: 1 });
    t.equal(reply.status, 200, reply.text);
    t.strictSame(reply.json, { data: { ...made, ...resource.change?.shown, updatedAt: now() } });
    t.strictSame((await api.manage('GET', `${url}/${made.id}`)).json, reply.json);
    // The row stays where it is, also when the body names another workspace.
    const moved = await asBoth('PUT', `${url}/${made.id}`, { ...change, workspaceId: 'ws2' });
    if (moved.status !== 400) t.equal(moved.json.data.workspaceId, workspaceId);
  });

  await t.test('DELETE 200: replies with the row; after that 404', async (t) => {
    const made = await add();
    const one = `${url}/${made.id}`;
    const reply = await api.manage('DELETE', one, { ignored: true });
    t.equal(reply.status, 200, reply.text);
    t.strictSame(reply.json, { data: made });
    for (const [method, body] of onOne) {
      const gone = await api.manage(method, one, body);
      t.equal(gone.status, 404, method);
      if (version === 'v1') {
        t.strictSame(gone.json.details, { resource_id: made.id, resource_type: type });
        // It looks for the row before it reads the body.
        t.equal((await api.manage(method, one, method === 'PUT' ? '{ not JSON' : undefined)).status, 404);
      } else {
        t.strictSame(gone.json.error.details, [{ field: type, issue: 'not found' }]);
        t.equal((await api.manage(method, `${url}/No!`, body)).status, 422);
      }
    }
  });

  await t.test('GET list 200: the rows of all workspaces that the key can access, in order', async (t) => {
    await add();
    api.advance(1_000);
    // A row of another workspace may have the same fields.
    const legacy = await asBoth('POST', url, { ...fields(count), environmentId: 'ws2' });
    t.match(legacy.json.data, { workspaceId: 'ws2', environmentId: 'ws2' }, 'environmentId names it too');
    api.advance(1_000);
    const last = await add();
    const order = version === 'v1' ? '' : '&order=asc';
    const all: Row[] = (await asBoth('GET', `${url}?limit=250${order}`)).json.data;
    t.ok(all.some(({ id }) => id === legacy.json.data.id));
    t.ok(all.some(({ id }) => id === last.id));
    const { sortedBy } = resource;
    const places = all.map((row) =>
      sortedBy === undefined ? String(row.createdAt) : `${row.workspaceId} ${row[sortedBy]}`,
    );
    t.strictSame(places, places.toSorted());
    const own: Row[] = (await api.manage('GET', `${url}?limit=250${order}`)).json.data;
    t.strictSame(
      own,
      all.filter((row) => row.workspaceId === workspaceId),
    );
    const second = await api.manage('GET', `${url}?limit=1&skip=1${order}`);
    t.strictSame(second.json.data, own.slice(1, 2));
    t.equal((await api.manage('GET', `${url}?skip=-1`)).status, version === 'v1' ? 400 : 422);
    if (version === 'v2') {
      t.strictSame(second.json.meta, { total: own.length, limit: 1, offset: 1 });
      const newest = (await api.manage('GET', url)).json;
      t.strictSame(newest, { data: own.toReversed(), meta: { total: own.length, limit: 50, offset: 0 } });
      t.equal((await api.manage('GET', `${url}?limit=251`)).status, 422);
    }
    t.notMatch((await api.manage('GET', url)).text, /whsec_/);
  });

  await t.test('POST 400 and 404: a workspace that is missing, not a text, or unknown', async (t) => {
    const body = fields(next());
    const details = (reply: { json: { details: unknown; error?: { details: unknown } } }) =>
      version === 'v1' ? reply.json.details : reply.json.error?.details;
    const problem = (issue: string) =>
      version === 'v1' ? { workspaceId: issue } : [{ field: 'workspaceId', issue }];
    const missing = await asBoth('POST', url, body);
    t.equal(missing.status, 400);
    t.strictSame(details(missing), problem('workspaceId must be provided'), 'two workspaces are possible');
    const unknown = await api.manage('POST', url, { ...body, workspaceId: 'cnothing' });
    t.equal(unknown.status, 404);
    t.match(
      details(unknown),
      version === 'v1' ? { resource_type: 'Workspace' } : [{ field: 'workspace', issue: 'not found' }],
    );
    if (version === 'v1') {
      const wrong = await api.manage('POST', url, { ...body, workspaceId: 1 });
      t.equal(wrong.json.message, 'workspaceId must be a string');
    }
    const only = await api.manage('POST', url, body);
    t.equal(only.status, resource.isWorkspaceOptional === true ? created : 400);
  });
}
