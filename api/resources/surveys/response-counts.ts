/** Numbers of responses. Triggers keep them, see api/db/migrations/response-counts.ts. */
import { sql } from 'kysely';
import type { Database } from '#api/db/schema.ts';

interface ResponseCount {
  readonly responses: number;
  readonly finished: number;
}

/** @returns the counts by survey; surveys that never had a response are left out */
export async function responseCountsOf(
  db: Database,
  surveyIds: readonly string[],
): Promise<ReadonlyMap<string, ResponseCount>> {
  if (surveyIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('responseCounts')
    .select([
      'surveyId',
      sql<number>`sum("responses")`.as('responses'),
      sql<number>`sum("finished")`.as('finished'),
    ])
    .where('surveyId', 'in', surveyIds)
    .groupBy('surveyId')
    .execute();
  return new Map(rows.map(({ surveyId, ...count }) => [surveyId, count]));
}

/** @param surveyId counts only its responses, and none if it is not in one of the workspaces */
export async function countResponses(
  db: Database,
  workspaceIds: readonly string[],
  surveyId?: string,
): Promise<number> {
  let surveys = db.selectFrom('surveys').where('surveys.workspaceId', 'in', workspaceIds);
  if (surveyId !== undefined) surveys = surveys.where('surveys.id', '=', surveyId);
  const { total } = await surveys
    .innerJoin('responseCounts', 'responseCounts.surveyId', 'surveys.id')
    .select(sql<number>`coalesce(sum("responses"), 0)`.as('total'))
    .executeTakeFirstOrThrow();
  return total;
}
