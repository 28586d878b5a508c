/** What is kept in one process, and changed through another. */
import { join } from 'node:path';
import t from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import { CHANGES_KEPT } from '#api/db/migrations/020-processes.ts';
import { startTableNews } from '#api/processes/table-news.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const log = { warn: () => undefined };

t.test('every change of what a state is made of is noted, with both ids of the workspace', async (t) => {
  const api = await startApi();
  t.teardown(() => api.close());
  const { db } = api.context;
  await api.addWorkspace('ws2', 'env2');
  const key = await api.addKey({ ws2: 'manage' });
  let last = 0;
  const noted = async () => {
    const rows = await db.selectFrom('stateChanges').selectAll().where('id', '>', last).execute();
    last = rows.at(-1)?.id ?? last;
    return [...new Set(rows.map((row) => `${row.workspaceId} ${row.environmentId}`))];
  };
  const management = '/api/v1/management';
  const send = async (method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object) => {
    const reply = await api.client(method, `${management}/${path}`, body, { 'x-api-key': key });
    t.equal(reply.status, 200, reply.text);
    return reply.json.data;
  };
  await noted();
  const expected = ['ws2 env2'];
  const action = await send('POST', 'action-classes', {
    workspaceId: 'ws2',
    name: 'A',
    type: 'code',
    key: 'a',
  });
  t.strictSame(await noted(), expected, 'an action class is made');
  await send('PUT', `action-classes/${action.id}`, { workspaceId: 'ws2', name: 'B', type: 'code', key: 'b' });
  t.strictSame(await noted(), expected, 'and changed');
  const segment = await send('POST', 'segments', { workspaceId: 'ws2', title: 'S' });
  t.strictSame(await noted(), expected, 'a segment');
  const questions = [{ id: 'q1', type: 'openText', headline: 'What?' }];
  const survey = await send('POST', 'surveys', { workspaceId: 'ws2', name: 'S', type: 'link', questions });
  t.strictSame(await noted(), expected, 'a survey');
  await send('PUT', `surveys/${survey.id}`, { name: 'Other' });
  t.strictSame(await noted(), expected, 'a changed survey');
  await send('DELETE', `surveys/${survey.id}`);
  t.strictSame(await noted(), expected, 'a deleted one');
  await send('DELETE', `segments/${segment.id}`);
  await send('DELETE', `action-classes/${action.id}`);
  t.strictSame(await noted(), expected, 'all are gone');
  await db.updateTable('workspaces').set({ overlay: 'dark' }).where('id', '=', 'ws2').execute();
  t.strictSame(await noted(), expected, 'settings');
  await db.deleteFrom('workspaces').where('id', '=', 'ws2').execute();
  t.ok((await noted()).includes('ws2 env2'), 'the workspace itself');
  const own = await addSurvey(api, { status: 'inProgress' });
  await noted();
  await api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    surveyId: own.id,
    finished: true,
    data: {},
  });
  t.strictSame(await noted(), [], 'a response changes no state');
});

t.test('the table is bounded, and whoever is further behind drops everything', async (t) => {
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
    listener: {
      onStateChange: ({ workspaceId, environmentId }) => heard.push(`${workspaceId} ${environmentId}`),
      onGap: () => heard.push('gap'),
    },
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
  await until(() => heard.length === 3);
  t.strictSame(heard, ['w e', 'w e', 'w e']);
  // One transaction, of which the others see nothing until it ends.
  await one.transaction().execute(async (trx) => {
    for (let i = 0; i < CHANGES_KEPT + 5; i += 100) {
      await trx
        .insertInto('segments')
        .values(segments(10 + i, 100))
        .execute();
    }
  });
  await until(() => heard.length >= 3 + 1 + CHANGES_KEPT);
  t.equal(heard[3], 'gap');
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
  t.strictSame(heard, ['w e'], 'what was rolled back leaves no gap');
});
