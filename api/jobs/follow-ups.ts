/**
 * Makes the follow-up mails of finished responses from their events. The transaction that takes an event also accepts its
 * mails, so each event sends each mail about once.
 *
 * A response has a limited number of follow-ups with one recipient each, and the organization has the limit
 * `actions.surveyFollowUp`. Mails beyond the limit are dropped with a line in the log.
 */
import type { Context } from '#api/context.ts';
import { unlocked } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import type { Mail } from '#api/mail/mailer.ts';
import { type BareSurvey, findBareSurveys } from '#api/resources/surveys/store.ts';
import { type Answered, followUpMail, isTriggered } from './follow-up-mail.ts';

const FOLLOW_UPS_MAX = 10;
/** The number of events in one transaction. More would delay requests. */
const BATCH = 50;

interface FollowUpLog {
  warn(fields: object, message: string): void;
}

type FollowUpParts = Pick<Context, 'db' | 'limits' | 'mailer'>;

/** @returns the number of events; 0 if none waits */
export async function acceptFollowUps(
  { db, limits, mailer }: FollowUpParts,
  log: FollowUpLog,
): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const waiting = trx
      .selectFrom('events')
      .select(['id', 'surveyId', 'payload'])
      .where('mailsDueAt', 'is not', null)
      .orderBy('mailsDueAt')
      .limit(BATCH);
    const events = await unlocked(trx, waiting).execute();
    if (events.length === 0) return 0;
    const ids = events.map(({ id }) => id);
    await trx.updateTable('events').set({ mailsDueAt: null }).where('id', 'in', ids).execute();
    const surveys = await findBareSurveys(
      trx,
      events.map(({ surveyId }) => surveyId),
    );
    const mails = events.flatMap(({ payload, surveyId }) => {
      const survey = surveys.get(surveyId);
      const { data } = JSON.parse(payload);
      return survey === undefined ? [] : mailsOf(survey, data, log).map((mail) => ({ survey, mail }));
    });
    for (const mail of await withinLimit(trx, limits, mails, log)) await mailer.accept(trx, mail);
    return events.length;
  });
}

/** Spends the limit for all mails at once, because a transaction waits for it. It waits only briefly for another server. */
async function withinLimit(
  trx: Database,
  limits: Context['limits'],
  due: readonly { readonly survey: BareSurvey; readonly mail: Mail }[],
  log: FollowUpLog,
): Promise<readonly Mail[]> {
  if (due.length === 0) return [];
  const organizations = await organizationsOf(
    trx,
    due.map(({ survey }) => survey.workspaceId),
  );
  const results = await Promise.all(
    due.map(({ survey }) =>
      limits.consume('actions.surveyFollowUp', organizations.get(survey.workspaceId) ?? survey.workspaceId),
    ),
  );
  const dropped = due.filter((_, i) => results[i] !== null);
  for (const [surveyId, all] of Map.groupBy(dropped, ({ survey }) => survey.id)) {
    log.warn({ surveyId, dropped: all.length }, 'follow-up mails are over the limit of the organization');
  }
  return due.filter((_, i) => results[i] === null).map(({ mail }) => mail);
}

function mailsOf(survey: BareSurvey, response: Answered, log: FollowUpLog): readonly Mail[] {
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
