/** Surveys for routes that accept responses: whether a survey is open, and whether it has changed since it was read. */
import { type ExpressionBuilder, expressionBuilder, sql } from 'kysely';
import { surveyVersion } from '#api/db/dialect.ts';
import type { Database, SurveyTable, Tables, Timestamp } from '#api/db/schema.ts';
import { type ApiError, forbidden } from '#api/errors.ts';
import { isId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { type BareSurvey, type Survey, selectSurveys, toBareSurvey } from './store.ts';

export interface AnsweredSurvey extends BareSurvey {
  /** Whether its workspace has a webhook, with any triggers. */
  readonly hasWebhooks: boolean;
  /** Changes with every change of another field here. */
  readonly version: string;
  /** Length of its document as stored, in characters. */
  readonly documentLength: number;
}

/** Makes one query. */
export async function findAnsweredSurvey(db: Database, id: string): Promise<AnsweredSurvey | null> {
  if (!isId(id)) return null;
  const row = await selectSurveys(db)
    .select((survey) => webhooksOf(survey).as('hasWebhooks'))
    .select(versionOf(db).as('version'))
    .where('surveys.id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { document, hasWebhooks, version } = row;
  return {
    ...toBareSurvey(row),
    hasWebhooks: Boolean(hasWebhooks),
    version,
    documentLength: document.length,
  };
}

/** Returns the `version` that `findAnsweredSurvey` would find now. null if there is no such survey. */
export async function findSurveyVersion(db: Database, id: string): Promise<string | null> {
  const row = await db
    .selectFrom('surveys')
    .select(versionOf(db).as('version'))
    .where('surveys.id', '=', id)
    .executeTakeFirst();
  return row?.version ?? null;
}

export function versionOf(db: Database) {
  const survey = expressionBuilder<Tables, 'surveys'>();
  // Without a row, because the workspace is being deleted, the version is null, which equals no other one.
  const environmentId = survey
    .selectFrom('workspaces')
    .select(sql<string>`coalesce("legacyEnvironmentId", '')`.as('id'))
    .whereRef('workspaces.id', '=', 'surveys.workspaceId')
    .where('workspaces.deletingAt', 'is', null);
  const others = sql<string>`cast(${webhooksOf(survey)} as text) || ${environmentId}`;
  return sql<string>`(${surveyVersion(db)} || ' ' || ${others})`;
}

/** Whether a survey accepts responses. It ends at its date, before a job says so. */
export function isOpen({ content }: Pick<Survey, 'content'>, now: Millis): boolean {
  return accepts(content, toTimestamp(now));
}

type Opening = Pick<SurveyTable, 'status' | 'closeOn'>;

function accepts({ status, closeOn }: Opening, now: Timestamp): boolean {
  return status === 'inProgress' && (closeOn === null || closeOn > now);
}

export interface SurveyNow extends Pick<AnsweredSurvey, 'hasWebhooks'> {
  /** Whether the survey accepts responses, see `isOpen`. */
  readonly isOpen: boolean;
}

/**
 * Returns the current state of a survey, as far as responses depend on it, in one query. null if there is no such
 * survey.
 */
export async function findSurveyNow(db: Database, id: string, now: Millis): Promise<SurveyNow | null> {
  const row = await db
    .selectFrom('surveys')
    .select(['status', 'closeOn'])
    .select((survey) => webhooksOf(survey).as('hasWebhooks'))
    .where('id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    isOpen: accepts(row, toTimestamp(now)),
    hasWebhooks: Boolean(row.hasWebhooks),
  };
}

/** Creates the error for respondents if a survey accepts no responses. */
export function surveyClosed(surveyId: string): ApiError {
  return forbidden('Survey is not accepting submissions', { surveyId });
}

/** Whether the workspace of a survey has webhooks, for a query on `surveys`. */
function webhooksOf({ exists, selectFrom }: ExpressionBuilder<Tables, 'surveys'>) {
  const webhooks = selectFrom('webhooks').select('webhooks.id');
  return exists(webhooks.whereRef('webhooks.workspaceId', '=', 'surveys.workspaceId'));
}
