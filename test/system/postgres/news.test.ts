/** The channel of PostgreSQL. The test starts its own server, without TEST_DATABASE=postgres. */
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { migrate } from '#api/db/migrate.ts';
import type { PostgresLocation } from '#api/db/postgres-address.ts';
import { type News, openNews } from '#api/processes/news.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { startPostgres } from '#test/support/postgres-process.ts';
import { until } from '#test/support/until.ts';

const server = await startPostgres();
t.teardown(() => server.close());
const location = ((): PostgresLocation => {
  const found = parseDatabaseUrl(server.url, '/');
  if (found.kind !== 'postgres') throw new Error('not PostgreSQL');
  return found;
})();
const db = openDatabase(location);
t.teardown(() => db.destroy());
await migrate(db);

const opened = ['gap', 'events', 'mails'];

interface Heard {
  readonly news: News;
  readonly heard: string[];
  readonly lines: string[];
}

async function open(t: Test, to: PostgresLocation): Promise<Heard> {
  const heard: string[] = [];
  const lines: string[] = [];
  const log = {
    info: (_fields: object, message: string) => void lines.push(message),
    warn: (_fields: object, message: string) => void lines.push(message),
  };
  const listener = {
    onStateChange: (workspaceId: string) => void heard.push(workspaceId),
    onGap: () => void heard.push('gap'),
    onEvents: () => void heard.push('events'),
    onMails: () => void heard.push('mails'),
  };
  const news = await openNews(to, listener, log);
  t.teardown(() => news.close());
  return { news, heard, lines };
}

async function listen(t: Test, applicationName: string): Promise<Heard> {
  const { heard, ...opening } = await open(t, { ...location, applicationName });
  t.strictSame(heard, opened, 'changes from before the connection may be missed');
  heard.length = 0;
  return { heard, ...opening };
}

t.test('events of other processes, and none of unrelated channels', async (t) => {
  const one = await listen(t, 'one');
  const other = await listen(t, 'other');
  await sql`select pg_notify('floodgate', 'no JSON')`.execute(db);
  for (let i = 0; i < 100; i += 1) other.news.tellEvents();
  await until(() => one.heard.length > 0);
  one.news.tellEvents();
  await until(() => other.heard.length > 0);
  t.strictSame([one.heard, other.heard], [['events'], ['events']], 'in one notification each');
});

t.test('mails, when their transaction is committed', async (t) => {
  const { heard } = await listen(t, 'mails');
  const now = '2026-01-01T00:00:00.000Z';
  await db.transaction().execute(async (trx) => {
    await trx
      .insertInto('mailOutbox')
      .values({
        id: 'm',
        createdAt: now,
        kind: 'test',
        recipient: 'a@example.com',
        replyTo: null,
        subject: '',
        body: '',
        status: 'pending',
        updatedAt: now,
        attemptCount: 0,
        failureCount: 0,
        dueAt: now,
        lease: null,
        lastError: null,
      })
      .execute();
    await sql`select pg_notify('floodgate', '["state","w"]')`.execute(db);
    await until(() => heard.length > 0);
    t.strictSame(heard, ['w']);
  });
  await until(() => heard.length > 1);
  t.strictSame(heard, ['w', 'mails']);
});

t.test('every change of workspace data is notified, with the workspace', async (t) => {
  const api = await startApi(t, { env: { DATABASE_URL: server.url } });
  const { heard } = await listen(t, 'states');
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'manage' });
  const expectChange = async (what: string) => {
    await until(() => heard.includes('ws2'));
    t.strictSame(new Set(heard), new Set(['ws2']), what);
    heard.length = 0;
  };
  const send = async (method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object) => {
    const reply = await api.client(method, `/api/v1/management/${path}`, body, { 'x-api-key': key });
    t.equal(reply.status, 200, reply.text);
    return reply.json.data;
  };
  const named = (name: string) => ({ workspaceId: 'ws2', name, type: 'code', key: name });
  const action = await send('POST', 'action-classes', named('a'));
  await expectChange('an action class is made');
  await send('PUT', `action-classes/${action.id}`, named('b'));
  await expectChange('and changed');
  const segment = await send('POST', 'segments', { workspaceId: 'ws2', title: 'S' });
  await expectChange('a segment');
  const questions = [{ id: 'q1', type: 'openText', headline: 'What?' }];
  const survey = await send('POST', 'surveys', { workspaceId: 'ws2', name: 'S', type: 'link', questions });
  await expectChange('a survey');
  await send('PUT', `surveys/${survey.id}`, { name: 'Other' });
  await expectChange('a changed survey');
  await send('DELETE', `surveys/${survey.id}`);
  await expectChange('a deleted one');
  await send('DELETE', `segments/${segment.id}`);
  await expectChange('a deleted segment');
  await send('DELETE', `action-classes/${action.id}`);
  await expectChange('a deleted action class');
  await db.updateTable('workspaces').set({ overlay: 'dark' }).where('id', '=', 'ws2').execute();
  await expectChange('settings');
  const own = await addSurvey(api, { status: 'inProgress' });
  await until(() => heard.includes(workspaceId));
  heard.length = 0;
  await api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    surveyId: own.id,
    finished: true,
    data: {},
  });
  await db.deleteFrom('workspaces').where('id', '=', 'ws2').execute();
  await expectChange('the workspace itself, and nothing by the response before');
});

t.test('a lost connection is opened again, and then all caches are dropped', async (t) => {
  const moving = { ...location, applicationName: 'moving' };
  const { heard, lines } = await open(t, moving);
  const lose = () =>
    sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'moving'`.execute(db);
  heard.length = 0;
  await lose();
  await until(() => heard.includes('mails'));
  t.strictSame(heard, opened);
  t.match(lines, [/do not arrive/, /arrive again/]);
  // A certificate that is being replaced cannot be read for a moment.
  const ca = { rootCertificate: '/nowhere/ca.pem', certificate: null, key: null };
  Object.assign(moving, { tls: { kind: 'on', checks: 'authority', ...ca } });
  heard.length = 0;
  await lose();
  await until(() => lines.length === 3);
  t.strictSame(heard, []);
  Object.assign(moving, { tls: location.tls });
  await until(() => heard.includes('mails'));
});

t.test('a start does not wait for a server that is away, and hears it later', async (t) => {
  await server.kill();
  const { heard, lines } = await open(t, location);
  t.match(lines, [/do not arrive/]);
  await server.restart();
  await until(() => heard.includes('mails'));
  t.strictSame(heard, opened);
});
