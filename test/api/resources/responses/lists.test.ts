/** Long lists of responses, on v1 and v2. */
import { sql } from 'kysely';
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';
import { planOf, startRecordedApi } from '#test/support/query-plan.ts';
import { responseRow } from '#test/support/response-row.ts';

t.test('v1: 25 responses of one survey, or all of all surveys, equal times by id', async (t) => {
  const api = await startApi(t);
  const { id } = await addSurvey(api);
  const rows = Array.from({ length: 30 }, (_, i) => responseRow(`r${10 + i}`, id));
  await api.context.db.insertInto('responses').values(rows).execute();
  const ids = rows.map((row) => row.id).reverse();
  const list = async (query: string) =>
    column((await api.manage('GET', `/api/v1/management/responses${query}`)).json.data, 'id');
  t.strictSame(await list(`?surveyId=${id}`), ids.slice(0, 25));
  t.strictSame(await list(''), ids);
});

t.test('v1: a page far into the lists of several workspaces', async (t) => {
  let rowsMax = 0;
  const fresh = await startApi(t, {
    parts: ({ db }) => ({
      db: db.withPlugin({
        transformQuery: ({ node }) => node,
        transformResult: async ({ result }) => {
          rowsMax = Math.max(rowsMax, result.rows.length);
          return result;
        },
      }),
    }),
  });
  await fresh.addWorkspace('ws2');
  const both = await fresh.addKey({ [workspaceId]: 'read', ws2: 'read' });
  const survey = await addSurvey(fresh);
  // No function takes this many arguments.
  const count = 150_000;
  await sql`insert into responses ("id", "createdAt", "updatedAt", "workspaceId", "surveyId", "finished", "data", "variables", "ttc", "meta")
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
    select 'c' || substr(cast(1000000 + n as text), 2), '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', ${workspaceId}, ${survey.id}, 1, '{}', '{}', '{}', '{}'
    from numbers`.execute(fresh.context.db);
  const reply = await fresh.client(
    'GET',
    `/api/v1/management/responses?skip=${count - 2}&limit=5`,
    undefined,
    { 'x-api-key': both },
  );
  t.equal(reply.status, 200);
  t.strictSame(column(reply.json.data, 'id'), ['c000002', 'c000001']);
  t.ok(rowsMax <= 10, `the database returns only the page: ${rowsMax} rows at most`);
});

const list = '/api/v2/management/responses';

t.test('v2: each order reads an index that has all it needs, also with a deep skip', async (t) => {
  const { api: recorded, db, queries } = await startRecordedApi(t);
  const { id: surveyId } = await addSurvey(recorded);
  for (const query of [
    'sortBy=createdAt&skip=600000',
    'sortBy=updatedAt&skip=600000',
    'sortBy=updatedAt&order=asc&limit=1&skip=1',
    `sortBy=updatedAt&surveyId=${surveyId}&skip=1`,
    `sortBy=createdAt&surveyId=${surveyId}&skip=1`,
    'sortBy=updatedAt&filterDateField=updatedAt&startDate=2026-01-01&skip=1',
  ]) {
    queries.length = 0;
    t.equal((await recorded.manage('GET', `${list}?${query}`)).status, 200, query);
    const ofResponses = queries.filter(({ sql }) => /from "responses"/.test(sql));
    t.equal(ofResponses.length, 2, `${query}: one reads the ids of the page, and one counts`);
    for (const one of ofResponses) {
      const plan = (await planOf(db, one)).join('; ');
      t.match(plan, /^SEARCH responses USING COVERING INDEX/, `${query}: ${plan}`);
      t.notMatch(plan, /TEMP B-TREE/, query);
    }
  }
});
