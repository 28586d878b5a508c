/**
 * Mails that a survey's author asked for, after a finished response. They are accepted by the mailer in the
 * transaction that takes the event out of the outbox, so each event brings each of them about once.
 *
 * Bounded: a number of follow-ups of one response, one recipient each, and `actions.surveyFollowUp` for the organization.
 * A mail beyond the limit is not sent later, it is dropped and said in the log.
 */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import type { Limiter } from '#api/limits/limiter.ts';
import type { Mail } from '#api/mail/mail.ts';
import type { Response } from '#api/resources/responses/store.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import { followUpMail, isTriggered } from './follow-up-mail.ts';

const FOLLOW_UPS_MAX = 10;

export interface FollowUpLog {
  warn(fields: object, message: string): void;
}

interface FinishedResponse {
  readonly survey: BareSurvey;
  readonly response: Response;
}

/**
 * Spends the limit for the mails that these responses ask for, all at once: a transaction waits meanwhile.
 *
 * @returns the mails that are within the limit
 */
export async function planFollowUps(
  { db, limits, log }: { readonly db: Kysely<Database>; readonly limits: Limiter; readonly log: FollowUpLog },
  finished: readonly FinishedResponse[],
): Promise<readonly Mail[]> {
  const due = finished.flatMap(({ survey, response }) =>
    mailsOf(survey, response, log).map((mail) => ({ survey, mail })),
  );
  if (due.length === 0) return [];
  const organizations = await organizationsOf(
    db,
    due.map(({ survey }) => survey.workspaceId),
  );
  const results = await Promise.all(
    due.map(({ survey }) =>
      limits.consume('actions.surveyFollowUp', organizations.get(survey.workspaceId) ?? survey.workspaceId),
    ),
  );
  const dropped = due.filter((_, i) => results[i]?.isAllowed === false);
  for (const surveyId of new Set(dropped.map(({ survey }) => survey.id))) {
    const count = dropped.filter(({ survey }) => survey.id === surveyId).length;
    log.warn({ surveyId, dropped: count }, 'follow-up mails are over the limit of the organization');
  }
  return due.filter((_, i) => results[i]?.isAllowed === true).map(({ mail }) => mail);
}

function mailsOf(survey: BareSurvey, response: Response, log: FollowUpLog): readonly Mail[] {
  try {
    return survey.content.followUps
      .filter((followUp) => isTriggered(followUp, response))
      .slice(0, FOLLOW_UPS_MAX)
      .flatMap((followUp) => followUpMail(followUp, survey, response) ?? []);
  } catch (error) {
    // One survey's mails must not keep the webhooks of everybody waiting.
    log.warn({ err: error, surveyId: survey.id }, 'the follow-up mails of a survey cannot be written');
    return [];
  }
}

/** Workspace id -> organization id. */
async function organizationsOf(
  db: Kysely<Database>,
  workspaceIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('workspaces')
    .select(['id', 'organizationId'])
    .where('id', 'in', [...new Set(workspaceIds)])
    .execute();
  return new Map(rows.map(({ id, organizationId }) => [id, organizationId]));
}
