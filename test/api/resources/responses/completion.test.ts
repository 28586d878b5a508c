/** `autoComplete` ends a survey after exactly that many finished responses, and rarely counts them. */
import t from 'tap';
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { deleteResponse } from '#api/resources/responses/store.ts';
import { changeResponse, createResponse } from '#api/resources/responses/write.ts';
import { type AnsweredSurvey, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';
import { dice } from '#test/support/seed.ts';
import { given } from './new-response.ts';

const api = await startApi(t);
const { context } = api;
const { db } = context;

async function surveyNow(id: string): Promise<AnsweredSurvey> {
  const survey = await findAnsweredSurvey(db, id);
  if (survey === null) throw new Error('The survey is not there');
  return survey;
}

async function surveyEndingAfter(autoComplete: number): Promise<AnsweredSurvey> {
  return surveyNow((await addSurvey(api, { autoComplete })).id);
}

const create = async (
  { id }: Pick<AnsweredSurvey, 'id'>,
  { finished = true, by = db, mustBeOpen = true } = {},
): Promise<string> => {
  const parts: Context = { ...context, db: by };
  return (await createResponse(parts, await surveyNow(id), { ...given, finished }, null, { mustBeOpen })).id;
};
const setFinished = async (survey: AnsweredSurvey, responseId: string, finished: boolean) =>
  changeResponse(context, await surveyNow(survey.id), responseId, { finished }, () => {}, {
    mustBeOpen: false,
  });
const change = (survey: AnsweredSurvey, fields: object) =>
  api.manage('PUT', `/api/v1/management/surveys/${survey.id}`, fields);
const statusOf = async ({ id }: AnsweredSurvey): Promise<string> => (await surveyNow(id)).content.status;
const isCount = ({ sql }: { readonly sql: string }): boolean => /count\(\*\)/.test(sql);

/** Returns the queries that count while this many finished responses arrive in sequence. */
const countsOf = async (survey: AnsweredSurvey, responses: number) =>
  (
    await queriesOf(db, async (by: Database) => {
      for (let i = 0; i < responses; i += 1) await create(survey, { by, mustBeOpen: false });
    })
  ).filter(isCount);

t.test('a thousand responses cause few counts', async (t) => {
  const survey = await surveyEndingAfter(1_000);
  // The first response causes a count, and a later one when half of the missing ones have arrived.
  t.equal((await countsOf(survey, 499)).length, 1);
  t.equal((await countsOf(survey, 500)).length, 9);
  t.equal(await statusOf(survey), 'inProgress');
  t.equal((await countsOf(survey, 1)).length, 1);
  t.equal(await statusOf(survey), 'completed');
  t.equal((await countsOf(survey, 5)).length, 0, 'no count after the survey has ended');
});

t.test('a count reads only an index, and no more of it than needed', async (t) => {
  const survey = await surveyEndingAfter(1);
  const [query] = await countsOf(survey, 1);
  if (query === undefined) throw new Error('Nothing was counted');
  t.strictSame(
    (await planOf(db, query)).filter((step) => /responses/.test(step)),
    ['SEARCH responses USING COVERING INDEX responses_finished (surveyId=? AND finished=?)'],
  );
  t.match(query.sql, / limit /);
  t.strictSame(query.parameters.at(-1), 1, 'the count stops at the number that ends the survey');
});

t.test('finishes exactly the set number, whatever happens meanwhile', async (t) => {
  const below = dice(7);
  for (let round = 0; round < 12; round += 1) {
    let goal: number | null = 4 + below(20);
    const survey = await surveyEndingAfter(goal);
    const responses = new Map<string, boolean>();
    const count = (): number => [...responses.values()].filter((finished) => finished).length;
    const one = (finished: boolean): string | undefined => {
      const ids = [...responses].filter(([, is]) => is === finished).map(([id]) => id);
      return ids[below(Math.max(1, ids.length))];
    };
    /** Whether a finished response was written and there are enough. */
    let mayEnd = false;
    for (let step = 0; step < 150; step += 1) {
      const [finished, open] = [one(true), one(false)];
      mayEnd = false;
      switch (below(9)) {
        case 0:
          if (finished !== undefined) await deleteResponse(db, finished);
          responses.delete(finished ?? '');
          break;
        case 1:
          if (finished === undefined) break;
          await setFinished(survey, finished, false);
          responses.set(finished, false);
          break;
        case 2:
          if (open === undefined) break;
          await setFinished(survey, open, true);
          responses.set(open, true);
          mayEnd = true;
          break;
        case 3:
          responses.set(await create(survey, { finished: false }), false);
          break;
        case 4: {
          if (below(4) !== 0) break;
          goal = [null, goal, Math.max(1, count() - 2 + below(8))][below(3)] ?? null;
          t.equal((await change(survey, { autoComplete: goal })).status, 200);
          break;
        }
        default:
          responses.set(await create(survey), true);
          mayEnd = true;
      }
      const isOver = mayEnd && goal !== null && count() >= goal;
      const status = await statusOf(survey);
      if (status !== (isOver ? 'completed' : 'inProgress')) {
        t.fail(`round ${round}, step ${step}: ${status} with ${count()} of ${goal}`);
      }
      if (isOver) break;
    }
    t.pass(`${count()} of ${goal}`);
  }
});

t.test('responses count that came while autoComplete was switched off', async (t) => {
  const survey = await surveyEndingAfter(10);
  await create(survey);
  await change(survey, { autoComplete: null });
  for (let i = 0; i < 6; i += 1) await create(survey);
  await change(survey, { autoComplete: 10 });
  for (let i = 0; i < 2; i += 1) await create(survey);
  t.equal(await statusOf(survey), 'inProgress');
  await create(survey);
  t.equal(await statusOf(survey), 'completed');
});

t.test('exactly the set number of concurrent responses is stored after others were deleted', async (t) => {
  const survey = await surveyEndingAfter(25);
  const first: string[] = [];
  for (let i = 0; i < 10; i += 1) first.push(await create(survey));
  await Promise.all(first.map((id) => deleteResponse(db, id)));
  const results = await Promise.allSettled(Array.from({ length: 40 }, () => create(survey)));
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 25);
  t.equal(await statusOf(survey), 'completed');
});

t.test('deleting a survey deletes its counter', async (t) => {
  const survey = await surveyEndingAfter(10);
  await create(survey);
  const left = () =>
    db.selectFrom('countdowns').select('skips').where('surveyId', '=', survey.id).executeTakeFirst();
  t.strictSame(await left(), { skips: 4 });
  t.equal((await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`)).status, 200);
  t.equal(await left(), undefined);
  t.equal(survey.workspaceId, workspaceId);
});
