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

for (const [query, rows, isCounted] of [
  ['limit=6', 5, false],
  ['limit=5', 5, true],
  ['limit=2', 2, true],
  ['limit=2&skip=3', 2, true],
  ['limit=2&skip=4', 1, false],
  ['limit=5&skip=5', 0, true],
  ['skip=9', 0, true],
] as const) {
  t.test(`${query}: only a page that does not end the list counts the rows`, async (t) => {
    for (const scope of ['', `&surveyId=${surveyId}`, '&startDate=2026-01-01']) {
      queries.length = 0;
      const { json } = await api.manage('GET', `/api/v2/management/responses?${query}${scope}`);
      t.strictSame([json.data.length, json.meta.total], [rows, 5], scope);
      t.equal(countsOf(), isCounted ? 1 : 0, scope);
    }
  });
}

t.test('a survey of another workspace has no responses, also behind the end', async (t) => {
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'manage' });
  for (const scope of ['', `&surveyId=${surveyId}`]) {
    const url = `/api/v2/management/responses?skip=9${scope}`;
    const { json } = await api.client('GET', url, undefined, { 'x-api-key': key });
    t.match(json, { data: [], meta: { total: 0 } });
  }
});
