/** Data that was read before a transaction may be outdated within it. */
import t from 'tap';
import { changeResponse, createResponse, type NewResponse } from '#api/resources/responses/write.ts';
import { type AnsweredSurvey, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { addSurvey, startApi } from '#test/support/api-app.ts';
import { given } from './new-response.ts';

const api = await startApi(t);
const { context } = api;

async function surveyEndingAfter(autoComplete: number): Promise<AnsweredSurvey> {
  const { id } = await addSurvey(api, { autoComplete });
  const survey = await findAnsweredSurvey(context.db, id);
  if (survey === null) throw new Error('The survey is not there');
  return survey;
}

const create = (survey: AnsweredSurvey, fields: Partial<NewResponse> = {}) =>
  createResponse(context, survey, { ...given, ...fields }, null, { mustBeOpen: true });

/** Counts the successful ones. The others must have received the error for a closed survey. */
async function accepted(attempts: readonly Promise<unknown>[]): Promise<number> {
  const results = await Promise.allSettled(attempts);
  for (const result of results) {
    if (result.status === 'rejected') t.match(result.reason, { code: 'forbidden' });
  }
  return results.filter(({ status }) => status === 'fulfilled').length;
}

t.test(
  'autoComplete: concurrent creations that all saw the survey open create only the allowed number',
  async (t) => {
    const survey = await surveyEndingAfter(3);
    t.equal(await accepted(Array.from({ length: 8 }, () => create(survey))), 3);
  },
);

t.test('autoComplete: concurrent updates finish only the allowed number', async (t) => {
  const survey = await surveyEndingAfter(2);
  const ids: string[] = [];
  for (let i = 0; i < 6; i += 1) ids.push((await create(survey, { finished: false })).id);
  const finish = (id: string) =>
    changeResponse(context, survey, id, { finished: true }, () => {}, { mustBeOpen: true });
  t.equal(await accepted(ids.map(finish)), 2);
});

t.test('autoComplete: some responses are created finished, some finished by an update', async (t) => {
  const survey = await surveyEndingAfter(2);
  const { id } = await create(survey, { finished: false });
  const finish = changeResponse(context, survey, id, { finished: true }, () => {}, { mustBeOpen: true });
  t.equal(await accepted([create(survey), finish, create(survey), create(survey)]), 2);
});
