/** Limits on numbers of rows are exact under concurrent writes. */
import type { InsertObject } from 'kysely';
import t from 'tap';
import type { Database, Tables } from '#api/db/schema.ts';
import { workspaceId } from '#test/support/api-app.ts';
import { organizationId, protectedForm } from '#test/support/owner.ts';
import { openSurvey, type Request } from '#test/support/world.ts';
import { brokenInvariants } from './invariants.ts';
import { asKey, client, countByStatus, startTwins, WRITERS } from './twins.ts';

const { atOnce, first } = await startTwins(t, { env: { STORAGE_TOTAL_MIB: '160' } });
const { api, tidy, world } = first;
const { db } = api.context;
const at = new Date(api.context.clock()).toISOString();
const organization = await organizationId({}, world);
const newKey = { label: 'One more', reach: organization, permission: 'read' };
const keyForm = await protectedForm(world, newKey, world.options.session);
/** Number of free places at the start. */
const FREE = 3;

const asOwner = (method: string, url: string, body: unknown): Request => ({
  ...{ method, url, headers: { cookie: world.options.session } },
  body: JSON.stringify(body),
});
const numbered = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

async function count(table: keyof Tables, column: string, value: string): Promise<number> {
  const { total } = await db
    .selectFrom(table)
    .select((select) => select.fn.countAll().as('total'))
    .where(db.dynamic.ref(column), '=', value)
    .executeTakeFirstOrThrow();
  return Number(total);
}

interface Limited {
  readonly table: keyof Tables;
  /** The maximum holds for the rows with this value. */
  readonly owner: readonly [column: string, id: string];
  readonly max: number;
  /** Writers that come too late get this reply, on each version of the API. */
  readonly refusal: readonly [status: number, problem: string];
  /** Inserts rows directly. */
  readonly fill: Fill;
  /** A request for one more row. */
  request(i: number): Request;
}

type Fill = (db: Database, from: number, to: number) => Promise<unknown>;

/** @param make makes the row of a number */
const rowsIn =
  <T extends keyof Tables>(table: T, make: (i: number) => InsertObject<Tables, T>): Fill =>
  (db, from, to) =>
    db
      .insertInto(table)
      .values(numbered(to - from, (i) => make(from + i)))
      .execute();

const row = (id: string) => ({ id, createdAt: at, updatedAt: at });
const management = '/api/v1/management';

const fillKeys = rowsIn('contactAttributeKeys', (i) => ({
  ...row(`key${i}`),
  ...{ workspaceId, key: `key${i}`, name: 'Key', description: '', isUnique: 0 as const },
  ...{ type: 'custom' as const, dataType: 'string' as const },
}));

/** Action classes, languages and segments are limited by the same code as webhooks, see workspaces/table.ts. */
const limited: readonly Limited[] = [
  {
    table: 'webhooks',
    owner: ['workspaceId', workspaceId],
    max: 100,
    refusal: [403, 'A workspace can have 100 webhooks'],
    fill: rowsIn('webhooks', (i) => ({
      ...row(`webhook${i}`),
      ...{ workspaceId, name: null, url: 'https://93.184.215.14', source: 'user', secret: 'whsec_AAAA' },
      ...{ triggers: '[]', surveyIds: '[]' },
    })),
    request: (i) =>
      asKey('POST', i % 4 < 2 ? '/api/v1/webhooks' : '/api/v2/management/webhooks', {
        ...{ workspaceId, name: 'One more', url: 'https://93.184.215.14', source: 'user' },
        ...{ triggers: ['responseCreated'], surveyIds: [] },
      }),
  },
  {
    table: 'contactAttributeKeys',
    owner: ['workspaceId', workspaceId],
    max: 150,
    refusal: [403, 'A workspace can have 150 attribute keys'],
    fill: fillKeys,
    request: (i) =>
      [
        asKey('POST', `${management}/contact-attribute-keys`, {
          workspaceId,
          key: `new${i}`,
          type: 'custom',
        }),
        asKey('POST', `${management}/attribute-classes`, { workspaceId, name: `new${i}`, type: 'code' }),
        asKey('POST', '/api/v2/management/contact-attribute-keys', { workspaceId, key: `new${i}` }),
      ][i % 3] as Request,
  },
  {
    table: 'apiKeys',
    owner: ['organizationId', organization],
    max: 200,
    refusal: [400, 'An organization has at most 200 keys'],
    fill: rowsIn('apiKeys', (i) => ({
      ...{ id: `apikey${i}`, organizationId: organization, label: 'One', createdBy: null },
      ...{ hashedKey: `hash${i}`, createdAt: at, lastUsedAt: null },
    })),
    request: () => ({ method: 'POST', url: '/account/api-keys', ...keyForm }),
  },
  {
    table: 'workspaces',
    owner: ['organizationId', organization],
    max: 100,
    refusal: [403, 'An organization can have 100 workspaces'],
    async fill(_db, from, to) {
      for (let i = from; i < to; i += 1) {
        const { status } = await world.options.send(newWorkspace(`workspace${i}`));
        if (status !== 200) throw new Error(`A workspace was answered ${status}`);
      }
    },
    request: (i) => newWorkspace(`new${i}`),
  },
];

function newWorkspace(name: string): Request {
  return asOwner('POST', `/api/v1/organizations/${organization}/workspaces`, { name });
}

for (const { fill, max, owner, refusal, request, table } of limited) {
  t.test(`${table}: at most ${max}`, async (t) => {
    await tidy();
    await fill(db, await count(table, ...owner), max - FREE);
    const replies = await atOnce(numbered(WRITERS, request));
    t.equal(await count(table, ...owner), max);
    const refused = replies.filter(({ status }) => status >= 300);
    t.equal(refused.length, WRITERS - FREE, JSON.stringify(countByStatus(replies)));
    const [status, problem] = refusal;
    for (const reply of refused) {
      t.equal(reply.status, status);
      t.match(reply.text, problem);
    }
    t.strictSame(await brokenInvariants(db), []);
  });
}

t.test('attribute keys that users send: at most 150', async (t) => {
  await db.deleteFrom('contactAttributeKeys').where('type', '=', 'custom').execute();
  await fillKeys(db, await count('contactAttributeKeys', 'workspaceId', workspaceId), 150 - FREE);
  const replies = await atOnce(
    numbered(WRITERS, (i) =>
      client('POST', 'user', { userId: `brings${i}`, attributes: { [`brought${i}`]: 'x' } }),
    ),
  );
  t.strictSame(countByStatus(replies), { 200: WRITERS });
  t.equal(await count('contactAttributeKeys', 'workspaceId', workspaceId), 150);
  t.equal(await count('contactAttributes', 'value', 'x'), FREE);
});

t.test('autoComplete: exactly the set number of finished responses, by creation and by update', async (t) => {
  const survey = await makeSurvey({ autoComplete: 5 });
  const begun = await Promise.all(numbered(WRITERS, () => makeResponse(survey)));
  const finished = { finished: true, data: { q1: 'x' } };
  const requests = begun.flatMap((id) => [
    client('POST', 'responses', { surveyId: survey, ...finished }),
    client('PUT', `responses/${id}`, finished),
  ]);
  const replies = await atOnce(requests);
  t.strictSame(countByStatus(replies), { 200: 5, 403: requests.length - 5 });
  const stored = await db
    .selectFrom('responses')
    .select('id')
    .where('surveyId', '=', survey)
    .where('finished', '=', 1)
    .execute();
  t.equal(stored.length, 5);
});

async function makeSurvey(overrides: Record<string, unknown>): Promise<string> {
  const { json } = await api.manage('POST', `${management}/surveys`, {
    workspaceId,
    ...openSurvey,
    ...overrides,
  });
  return json.data.id;
}

async function makeResponse(surveyId: string): Promise<string> {
  const { json } = await api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    ...{ surveyId, finished: false, data: {} },
  });
  return json.data.id;
}
