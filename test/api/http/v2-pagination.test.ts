/** The totals of v2 lists: they are right on each page, and no more rows are counted than needed. */
import t from 'tap';
import { addSurvey } from '#test/support/api-app.ts';
import { startRecordedApi } from '#test/support/query-plan.ts';
import { responseRow } from '#test/support/response-row.ts';

const { api, db, queries } = await startRecordedApi(t);
const { id: surveyId } = await addSurvey(api);
await db
  .insertInto('responses')
  .values(['r1', 'r2', 'r3', 'r4', 'r5'].map((id) => responseRow(id, surveyId)))
  .execute();

const countsOf = () => queries.filter(({ sql }) => /\bcount\(\*\)/.test(sql)).length;

t.test('no page counts all rows', async (t) => {
  for (const [query, rows] of [
    ['limit=6', 5],
    ['limit=5', 5],
    ['limit=2', 2],
    ['limit=2&skip=3', 2],
    ['limit=2&skip=4', 1],
    ['limit=5&skip=5', 0],
    ['skip=9', 0],
  ] as const) {
    for (const scope of ['', `&surveyId=${surveyId}`]) {
      queries.length = 0;
      const { json } = await api.manage('GET', `/api/v2/management/responses?${query}${scope}`);
      t.equal(json.data.length, rows, query);
      t.equal(json.meta.total, 5, query);
      t.equal(countsOf(), 0, query + scope);
    }
  }
});

t.test('between dates, only a full page and an empty one behind the end count the rows', async (t) => {
  for (const [query, rows, isCounted] of [
    ['limit=6', 5, false],
    ['limit=5', 5, true],
    ['limit=2', 2, true],
    ['limit=2&skip=3', 2, true],
    ['limit=2&skip=4', 1, false],
    ['limit=5&skip=5', 0, true],
    ['skip=9', 0, true],
  ] as const) {
    queries.length = 0;
    const { json } = await api.manage('GET', `/api/v2/management/responses?startDate=2026-01-01&${query}`);
    t.equal(json.data.length, rows, query);
    t.equal(json.meta.total, 5, query);
    t.equal(countsOf(), isCounted ? 1 : 0, query);
  }
});

t.test('no rows at all need no count', async (t) => {
  queries.length = 0;
  const { json } = await api.manage('GET', '/api/v2/management/responses?surveyId=unknown');
  t.strictSame([json.data, json.meta.total], [[], 0]);
  t.equal(countsOf(), 0);
});

t.test('a survey of another workspace has no responses, also behind the end', async (t) => {
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'manage' });
  for (const scope of ['', `&surveyId=${surveyId}`]) {
    const url = `/api/v2/management/responses?skip=9${scope}`;
    const { json } = await api.client('GET', url, undefined, { 'x-api-key': key });
    t.match(json, { data: [], meta: { total: 0 } });
  }
});
