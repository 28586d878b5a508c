/** Other requests do not wait for a large deletion. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { responseRow } from '#test/support/response-row.ts';

t.test('deletes a survey with many responses in slices, between which others can write', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const survey = await addSurvey(api);
  const other = await addSurvey(api, { name: 'Other' });
  for (let start = 0; start < 2_000; start += 500) {
    await db
      .insertInto('responses')
      .values(Array.from({ length: 500 }, (_, i) => responseRow(`r${start + i}`, survey.id)))
      .execute();
  }
  const left = async (): Promise<number> => {
    const { count } = await db
      .selectFrom('responses')
      .select((select) => select.fn.countAll().as('count'))
      .where('surveyId', '=', String(survey.id))
      .executeTakeFirstOrThrow();
    return Number(count);
  };
  const deleting = api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  const seen = new Set<number>();
  let isDone = false;
  deleting.then(() => {
    isDone = true;
  });
  const written: number[] = [];
  while (!isDone) {
    seen.add(await left());
    const reply = await api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
      surveyId: other.id,
      finished: true,
      data: { q1: 'x' },
    });
    written.push(reply.status);
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.equal((await deleting).status, 200);
  t.ok(seen.size > 2, `${[...seen].join()} were left while others wrote`);
  t.strictSame([...new Set(written)], [200]);
  t.equal(await left(), 0);
  t.equal((await api.manage('GET', `/api/v1/management/surveys/${survey.id}`)).status, 404);
});
