/** `autoComplete` ends a survey after exactly that many finished responses. */
import t from 'tap';
import { conflict } from '#api/errors.ts';
import { responses } from '#api/resources/responses/store.ts';
import { changeResponse, createResponse } from '#api/resources/responses/write.ts';
import { type AnsweredSurvey, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { addSurvey, startApi } from '#test/support/api-app.ts';
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

/** Creates a response, unless the survey has ended. */
const create = async ({ id }: Pick<AnsweredSurvey, 'id'>, finished = true): Promise<string> => {
  const made = await createResponse(context, id, ({ content }) => {
    if (content.status !== 'inProgress') throw conflict('ended');
    return { ...given, finished };
  });
  return made.id;
};
const setFinished = (survey: AnsweredSurvey, id: string, finished: boolean) =>
  changeResponse(context, { id, surveyId: survey.id }, () => ({ finished }));
const change = (survey: AnsweredSurvey, fields: object) =>
  api.manage('PUT', `/api/v1/management/surveys/${survey.id}`, fields);
const statusOf = async ({ id }: AnsweredSurvey): Promise<string> => (await surveyNow(id)).content.status;

t.test('finishes exactly the set number, whatever happens meanwhile', async (t) => {
  const below = dice(7);
  for (let round = 0; round < 12; round += 1) {
    let goal: number | null = 4 + below(20);
    const survey = await surveyEndingAfter(goal);
    const known = new Map<string, boolean>();
    const count = (): number => [...known.values()].filter((finished) => finished).length;
    const one = (finished: boolean): string | undefined => {
      const ids = [...known].filter(([, is]) => is === finished).map(([id]) => id);
      return ids[below(Math.max(1, ids.length))];
    };
    /** Whether a finished response was written and there are enough. */
    let mayEnd = false;
    for (let step = 0; step < 150; step += 1) {
      const [finished, open] = [one(true), one(false)];
      mayEnd = false;
      switch (below(9)) {
        case 0:
          if (finished !== undefined) await responses.remove(db, finished);
          known.delete(finished ?? '');
          break;
        case 1:
          if (finished === undefined) break;
          await setFinished(survey, finished, false);
          known.set(finished, false);
          break;
        case 2:
          if (open === undefined) break;
          await setFinished(survey, open, true);
          known.set(open, true);
          mayEnd = true;
          break;
        case 3:
          known.set(await create(survey, false), false);
          break;
        case 4: {
          if (below(4) !== 0) break;
          goal = [null, goal, Math.max(1, count() - 2 + below(8))][below(3)] ?? null;
          t.equal((await change(survey, { autoComplete: goal })).status, 200);
          break;
        }
        default:
          known.set(await create(survey), true);
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
  await Promise.all(first.map((id) => responses.remove(db, id)));
  const results = await Promise.allSettled(Array.from({ length: 40 }, () => create(survey)));
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 25);
  t.equal(await statusOf(survey), 'completed');
});
