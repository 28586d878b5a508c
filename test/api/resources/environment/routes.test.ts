/** A state has the running app surveys, and shows other changes within a minute. See test/conversations/sdk.md too. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { until } from '#test/support/until.ts';

const path = `/api/v1/client/${workspaceId}/environment`;

t.test('200: only running app surveys, newest first, at most 30', async (t) => {
  const fresh = await startApi(t);
  await addSurvey(fresh, { type: 'link' });
  for (const status of ['draft', 'paused', 'completed', 'scheduled'])
    await addSurvey(fresh, { type: 'app', status });
  const ids: string[] = [];
  for (let i = 0; i < 32; i += 1) {
    fresh.advance(1);
    ids.unshift((await addSurvey(fresh, { type: i % 2 === 0 ? 'app' : 'website' })).id);
  }
  const { data } = (await fresh.client('GET', path)).json;
  const idsOf = (surveys: readonly { id: string }[]): string[] => surveys.map(({ id }) => id);
  t.strictSame(idsOf(data.surveys), ids.slice(0, 30));
  t.strictSame(idsOf(data.data.surveys), ids.slice(0, 30));
});

t.test('200: other changes are visible within a minute', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const state = async () => (await api.client('GET', path)).json.data;
  await state();
  await db.updateTable('workspaces').set({ recontactDays: 9 }).where('id', '=', workspaceId).execute();
  api.advance(60_000 - 1);
  t.equal((await state()).project.recontactDays, 7);
  api.advance(1);
  t.equal((await state()).project.recontactDays, 9);
});

t.test('200: the first fetch completes the setup of the app', async (t) => {
  const fresh = await startApi(t);
  const isSetUp = async () => (await fresh.manage('GET', '/api/v1/me')).json.appSetupCompleted;
  t.equal(await isSetUp(), false);
  await fresh.client('GET', path);
  await until(isSetUp, 'the set-up is complete');
});
