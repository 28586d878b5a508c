/** The totals of v2 lists: they are right on each page, and counted only where the page does not tell them. */
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

t.test('only a full page and an empty one behind the end count all rows', async (t) => {
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
    const { json } = await api.manage('GET', `/api/v2/management/responses?${query}`);
    t.equal(json.data.length, rows, query);
    t.equal(json.meta.total, 5, query);
    t.equal(queries.filter(({ sql }) => /\bcount\(\*\)/.test(sql)).length, isCounted ? 1 : 0, query);
  }
});

t.test('no rows at all need no count', async (t) => {
  queries.length = 0;
  const { json } = await api.manage('GET', '/api/v2/management/responses?surveyId=unknown');
  t.strictSame([json.data, json.meta.total], [[], 0]);
  t.equal(queries.filter(({ sql }) => /\bcount\(\*\)/.test(sql)).length, 0);
});
