/** The surveys that all responses of the bench belong to. */
import { idIn } from './operations.ts';
import { type Service, workspaceId } from './service.ts';

const SURVEYS = 20;

/** @returns ids of surveys; the last one counts its responses */
export async function makeSurveys(start: () => Promise<Service>): Promise<readonly string[]> {
  const service = await start();
  const surveyIds: string[] = [];
  try {
    for (let i = 0; i <= SURVEYS; i++) {
      const made = await service.call({
        method: 'POST',
        path: '/api/v1/management/surveys',
        body: {
          workspaceId,
          name: `Survey ${i}`,
          type: i === 0 ? 'website' : 'link',
          status: 'inProgress',
          autoComplete: i === SURVEYS ? 1_000_000 : null,
          questions: [
            { id: 'q1', type: 'openText', headline: { default: 'What?' } },
            { id: 'q2', type: 'nps', headline: { default: 'How much?' }, required: false },
          ],
        },
      });
      surveyIds.push(idIn(made));
    }
  } finally {
    await service.stop();
  }
  return surveyIds;
}
