/** One process caches a state, and another one changes it. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { migrate } from '#api/db/migrate.ts';
import { CHANGES_KEPT } from '#api/db/migrations/state-changes.ts';
import { openNews } from '#api/processes/open-news.ts';
import { startTableNews } from '#api/processes/table-news.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { listenerTo } from './support.ts';

const log = { info: () => undefined, warn: () => undefined };

async function heardOn(t: Test, url: string): Promise<string[]> {
  const heard: string[] = [];
  const db = openTestDatabase(url);
  const news = await openNews(parseDatabaseUrl(url, '/'), { db, listener: listenerTo(heard), log });
  t.teardown(async () => {
    await news.close();
    await db.destroy();
  });
  heard.length = 0;
  return heard;
}

t.test('every change of workspace data is notified, with both ids of the workspace', async (t) => {
  const url = await sharedDatabase(t);
  const api = await startApi(t, { env: { DATABASE_URL: url } });
  const { db } = api.context;
  const heard = await heardOn(t, url);
  await api.addWorkspace('ws2', 'env2');
  const key = await api.addKey({ ws2: 'manage' });
  const expectChange = async (what: string) => {
    await until(() => heard.includes('ws2 env2'));
    t.strictSame(new Set(heard), new Set(['ws2 env2']), what);
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
  await until(() => heard.includes(`${workspaceId} ${workspaceId}`));
  heard.length = 0;
  await api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    surveyId: own.id,
    finished: true,
    data: {},
  });
  await db.deleteFrom('workspaces').where('id', '=', 'ws2').execute();
  await expectChange('the workspace itself, and nothing by the response before');
});

t.test('SQLite: the table is bounded; a process further behind drops its whole cache', async (t) => {
  const path = join(temporaryFolder(t), 'floodgate.sqlite');
  const [one, other] = [openDatabase({ kind: 'file', path }), openDatabase({ kind: 'file', path })];
  t.teardown(() => Promise.all([one.destroy(), other.destroy()]));
  await migrate(one);
  const now = '2026-01-01T00:00:00.000Z';
  await one
    .insertInto('organizations')
    .values({ id: 'o', createdAt: now, updatedAt: now, name: 'O', isOperators: 0 })
    .execute();
  const heard: string[] = [];
  const news = await startTableNews({
    db: other,
    listener: listenerTo(heard),
    log,
    pollMs: 20,
  });
  t.teardown(() => news.close());
  const segments = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      id: `s${from + i}`,
      createdAt: now,
      updatedAt: now,
      workspaceId: 'w',
      title: `S${from + i}`,
      description: null,
      isPrivate: 0 as const,
      filters: '[]',
    }));
  await one
    .insertInto('workspaces')
    .values({
      id: 'w',
      createdAt: now,
      updatedAt: now,
      organizationId: 'o',
      name: 'W',
      legacyEnvironmentId: 'e',
      appSetupCompleted: 0,
      websiteSetupCompleted: 0,
      recontactDays: 7,
      clickOutsideClose: 1,
      overlay: 'none',
      placement: 'center',
      inAppSurveyBranding: 1,
      styling: '{}',
    })
    .execute();
  await one.insertInto('segments').values(segments(0, 3)).execute();
  await until(() => heard.length === 4);
  t.strictSame(new Set(heard), new Set(['w e']), 'the workspace and each segment are notified');
  // The others see nothing of this transaction until it ends.
  await one.transaction().execute(async (trx) => {
    for (let i = 0; i < CHANGES_KEPT + 5; i += 100) {
      await trx
        .insertInto('segments')
        .values(segments(10 + i, 100))
        .execute();
    }
  });
  await until(() => heard.length >= 4 + 1 + CHANGES_KEPT);
  t.equal(heard[4], 'gap');
  const { count } = await one
    .selectFrom('stateChanges')
    .select((row) => row.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  t.equal(Number(count), CHANGES_KEPT);
  await one
    .transaction()
    .execute(async (trx) => {
      await trx.insertInto('segments').values(segments(5_000, 1)).execute();
      throw new Error('rolled back');
    })
    .catch(() => undefined);
  heard.length = 0;
  await one.insertInto('segments').values(segments(6_000, 1)).execute();
  await until(() => heard.length > 0);
  t.strictSame(heard, ['w e'], 'a transaction that was rolled back leaves no gap');
});
