/**
 * A deletion leaves the database as it was before the creation. The test counts every table and checks every reference.
 */
import { sql } from 'kysely';
import t from 'tap';
import { languages } from '#api/resources/languages/store.ts';
import {
  addActionClass,
  addSurvey,
  startApi,
  surveyBody,
  type TestApi,
  workspaceId,
} from '#test/support/api-app.ts';
import { brokenReferences } from '#test/support/database.ts';

/**
 * Events stay until they are delivered, also without the rows that they are about. Only their workspace deletes them.
 */
const eventTables: readonly string[] = ['events', 'deliveries', 'deliveryAttempts'];

/** Maps tables to their number of rows. */
async function census(
  { context: { db } }: TestApi,
  without: readonly string[] = [],
): Promise<Record<string, number>> {
  const tables = await db.introspection.getTables();
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    if (without.includes(name)) continue;
    const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(name)}`.execute(
      db,
    );
    counts[name] = rows[0]?.count ?? 0;
  }
  return counts;
}

const broken = ({ context: { db } }: TestApi): Promise<readonly unknown[]> => brokenReferences(db);

/** Adds a user who saw and answered a survey. */
async function useSurvey(api: TestApi, workspace: string, surveyId: string, userId: string): Promise<void> {
  const client = `/api/v1/client/${workspace}`;
  const display = await api.client('POST', `${client}/displays`, { surveyId, userId });
  const displayId = display.json.data.id;
  for (const body of [
    { surveyId, userId, displayId, finished: true, data: { q1: 'x' } },
    { surveyId, userId, finished: false, data: {} },
  ]) {
    const reply = await api.client('POST', `${client}/responses`, body);
    if (reply.status !== 200) throw new Error(reply.text);
  }
}

t.test(
  'deleting a survey deletes its responses, displays, triggers, languages and private segment',
  async (t) => {
    const api = await startApi(t);
    const { db, clock } = api.context;
    const at = new Date(clock()).toISOString();
    await languages.insert(db, {
      id: 'l1',
      workspaceId,
      code: 'en',
      alias: null,
      createdAt: at,
      updatedAt: at,
    });
    const action = await addActionClass(api, 'A');
    await api.client('POST', `/api/v1/client/${workspaceId}/user`, { userId: 'u1' });
    const before = await census(api, eventTables);
    const survey = await addSurvey(api, {
      type: 'app',
      triggers: [{ actionClass: { id: action.id } }],
      languages: [{ language: 'en', default: true }],
    });
    await useSurvey(api, workspaceId, survey.id, 'u1');
    t.equal((await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`)).status, 200);
    t.strictSame(await census(api, eventTables), before);
    t.strictSame(await broken(api), []);
  },
);

t.test(
  'deleting a contact deletes its attributes and displays, and keeps its responses without it',
  async (t) => {
    const api = await startApi(t);
    const survey = await addSurvey(api);
    const before = await census(api, eventTables);
    await useSurvey(api, workspaceId, survey.id, 'u1');
    const user = await api.client('POST', `/api/v1/client/${workspaceId}/user`, {
      userId: 'u1',
      attributes: { email: 'a@b' },
    });
    const { contactId } = user.json.data.state.data;
    t.equal((await api.manage('DELETE', `/api/v1/management/contacts/${contactId}`)).status, 200);
    const after = await census(api, eventTables);
    t.strictSame(after, { ...before, responses: 2, responseCounts: 1 });
    t.strictSame(await broken(api), []);
    const { rows } =
      await sql`select id from responses where "contactId" is not null or "displayId" is not null`.execute(
        api.context.db,
      );
    t.strictSame(rows, []);
  },
);

t.test('deleting a workspace deletes everything in it', async (t) => {
  const api = await startApi(t);
  const { db, clock } = api.context;
  const key = await api.addKey({});
  const before = await census(api);
  await api.addWorkspace('ws2');
  const { id: apiKeyId } = await db
    .selectFrom('apiKeys')
    .select('id')
    .where('label', '=', 'Test')
    .executeTakeFirstOrThrow();
  await db
    .insertInto('apiKeyPermissions')
    .values({ apiKeyId, workspaceId: 'ws2', permission: 'manage' })
    .execute();
  const at = new Date(clock()).toISOString();
  await languages.insert(db, {
    id: 'l2',
    workspaceId: 'ws2',
    code: 'en',
    alias: null,
    createdAt: at,
    updatedAt: at,
  });
  const post = async (url: string, body: Record<string, unknown>) => {
    const reply = await api.client('POST', url, { workspaceId: 'ws2', ...body }, { 'x-api-key': key });
    if (reply.status !== 200) throw new Error(reply.text);
    return reply.json.data;
  };
  const action = await post('/api/v1/management/action-classes', { name: 'A', type: 'code', key: 'a' });
  await post('/api/v1/management/contact-attribute-keys', { key: 'plan', type: 'custom' });
  await post('/api/v1/webhooks', { url: 'https://hooks.example.com', triggers: ['responseCreated'] });
  const survey = await post('/api/v1/management/surveys', {
    ...surveyBody({
      type: 'app',
      triggers: [{ actionClass: { id: action.id } }],
      languages: [{ language: 'en' }],
    }),
    workspaceId: 'ws2',
  });
  await api.client('POST', '/api/v1/client/ws2/user', { userId: 'u1', attributes: { plan: 'pro' } });
  await useSurvey(api, 'ws2', survey.id, 'u1');
  await db.deleteFrom('workspaces').where('id', '=', 'ws2').execute();
  t.strictSame(await census(api), before);
  t.strictSame(await broken(api), []);
});
