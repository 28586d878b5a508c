/**
 * Plans the follow-up mails of finished responses. The mailer accepts them in the transaction that takes the event out of
 * the outbox, so each event sends each mail about once.
 *
 * A response has a limited number of follow-ups with one recipient each, and the organization has the limit
 * `actions.surveyFollowUp`. Mails beyond the limit are dropped with a line in the log.
 */
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
 * Spends the limit for the mails of all these responses at once, because a transaction waits for it.
 *
 * @returns the mails within the limit
 */
export async function planFollowUps(
  { db, limits, log }: { readonly db: Database; readonly limits: Limiter; readonly log: FollowUpLog },
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
    // An error in the mails of one survey must not delay the webhooks of all.
    log.warn({ err: error, surveyId: survey.id }, 'the follow-up mails of a survey cannot be written');
    return [];
  }
}

/** Maps the id of a workspace to that of its organization. */
async function organizationsOf(
  db: Database,
  workspaceIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('workspaces')
    .select(['id', 'organizationId'])
    .where('id', 'in', [...new Set(workspaceIds)])
    .execute();
  return new Map(rows.map(({ id, organizationId }) => [id, organizationId]));
}
