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

/** @returns what to send about this finished response of the survey */
export async function planFollowUps(
  { db, limits, log }: { readonly db: Kysely<Database>; readonly limits: Limiter; readonly log: FollowUpLog },
  survey: BareSurvey,
  response: Response,
): Promise<readonly Mail[]> {
  if (survey.content.followUps.length === 0) return [];
  const due = mailsOf(survey, response, log);
  if (due.length === 0) return [];
  const organizationId = await organizationOf(db, survey.workspaceId);
  const allowed: Mail[] = [];
  for (const mail of due) {
    const { isAllowed } = await limits.consume('actions.surveyFollowUp', organizationId);
    if (isAllowed) allowed.push(mail);
  }
  if (allowed.length < due.length) {
    const dropped = due.length - allowed.length;
    log.warn({ surveyId: survey.id, dropped }, 'follow-up mails are over the limit of the organization');
  }
  return allowed;
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

async function organizationOf(db: Kysely<Database>, workspaceId: string): Promise<string> {
  const { organizationId } = await db
    .selectFrom('workspaces')
    .select('organizationId')
    .where('id', '=', workspaceId)
    .executeTakeFirstOrThrow();
  return organizationId;
}
