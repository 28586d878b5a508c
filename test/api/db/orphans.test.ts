/** A deletion leaves the database as it was before the creation. test/api/resources/organizations has whole workspaces. */
import { sql } from 'kysely';
import t from 'tap';
import { languages } from '#api/resources/languages/store.ts';
import { addActionClass, addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { brokenReferences } from '#test/support/database.ts';
import { countTables } from '#test/support/full-workspace.ts';

/** Counts the rows of tables without those of events, which stay until they are delivered. */
async function census({ context: { db } }: TestApi): Promise<Record<string, number>> {
  const { events, deliveries, deliveryAttempts, ...counts } = await countTables(db);
  return counts;
}

/** Adds a user who saw and answered a survey. */
async function useSurvey(api: TestApi, surveyId: string, userId: string): Promise<void> {
  const client = `/api/v1/client/${workspaceId}`;
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
  'a survey takes its responses, displays, triggers, languages and private segment with it',
  async (t) => {
    const api = await startApi(t);
    const { db } = api.context;
    const at = '2026-01-01T00:00:00.000Z';
    const language = { id: 'l1', workspaceId, code: 'en', alias: null, createdAt: at, updatedAt: at };
    await languages.insert(db, language);
    const action = await addActionClass(api, 'A');
    await api.client('POST', `/api/v1/client/${workspaceId}/user`, { userId: 'u1' });
    const before = await census(api);
    const survey = await addSurvey(api, {
      type: 'app',
      triggers: [{ actionClass: { id: action.id } }],
      languages: [{ language: 'en', default: true }],
    });
    await useSurvey(api, survey.id, 'u1');
    t.equal((await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`)).status, 200);
    t.strictSame(await census(api), before);
    t.strictSame(await brokenReferences(db), []);
  },
);

t.test(
  'a contact takes its attributes and displays with it, and its responses stay without it',
  async (t) => {
    const api = await startApi(t);
    const { db } = api.context;
    const survey = await addSurvey(api);
    const before = await census(api);
    await useSurvey(api, survey.id, 'u1');
    const user = await api.client('POST', `/api/v1/client/${workspaceId}/user`, {
      ...{ userId: 'u1', attributes: { email: 'a@b' } },
    });
    const { contactId } = user.json.data.state.data;
    t.equal((await api.manage('DELETE', `/api/v1/management/contacts/${contactId}`)).status, 200);
    t.strictSame(await census(api), { ...before, responses: 2 });
    t.strictSame(await brokenReferences(db), []);
    const linked = sql`select id from responses where "contactId" is not null or "displayId" is not null`;
    t.strictSame((await linked.execute(db)).rows, []);
  },
);
