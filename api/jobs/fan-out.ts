/**
 * Turns events into deliveries and follow-up mails, in one transaction for each batch:
 *
 * 1. Claim the oldest events of the outbox. With SQLite one transaction writes at a time; with PostgreSQL each process
 *    takes events that no other one has locked. So only one process goes on with an event.
 * 2. Make a delivery for each webhook that wants the event. Webhooks are those that exist at this moment.
 * 3. Spend the limit of the follow-up mails, and enqueue the mails that are within it. This may ask another server,
 *    whose answer is waited for only briefly.
 *
 * A crash before the commit leaves the events in the outbox.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Context } from '#api/context.ts';
import { deletingWorkspaces } from '#api/db/deleting.ts';
import { kept, unlocked } from '#api/db/locks.ts';
import type { Database, EventTable, EventType } from '#api/db/schema.ts';
import type { Mail } from '#api/mail/mail.ts';
import type { Snapshot, SurveySnapshot } from '#api/resources/responses/record-events.ts';
import { toResponseReplyWithNotes } from '#api/resources/responses/reply.ts';
import { type ResponseWithRelations, withRelations } from '#api/resources/responses/store.ts';
import { findBareSurveys } from '#api/resources/surveys/store.ts';
import { newId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { type FollowUpLog, planFollowUps } from './follow-ups.ts';

/** The number of events in one transaction. More would delay requests. */
const BATCH = 50;
/** The number of rows in one insert. Databases limit the parameters of a statement. */
const ROWS_MAX = 500;
/** A statement that is at least this long, in characters, gets no further payloads. */
const STATEMENT_LENGTH_MAX = 1_048_576;

interface OpenEvent extends Pick<EventTable, 'id' | 'workspaceId' | 'surveyId' | 'type'> {
  readonly survey: Snapshot['survey'];
  readonly response: ResponseWithRelations;
}

interface Subscription {
  readonly id: string;
  readonly workspaceId: string;
  readonly triggers: readonly EventType[];
  /** Ids of the surveys; empty for all surveys. */
  readonly surveyIds: readonly string[];
}

type FanOutParts = Pick<Context, 'db' | 'clock' | 'random' | 'config' | 'limits' | 'mailer'>;

/** @returns the number of events; 0 if the outbox is empty */
export async function fanOut(
  { db, clock, random, config, limits, mailer }: FanOutParts,
  log: FollowUpLog,
): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const events = await readOutbox(trx);
    if (events.length > 0) await write(trx, events);
    return events.length;
  });

  async function write(trx: Database, events: readonly OpenEvent[]): Promise<void> {
    const now = toTimestamp(clock());
    await claim(trx, events, now);
    const subscriptions = await readSubscriptions(trx, events);
    const deliveries = events.flatMap((event) =>
      subscriptions
        .filter((subscription) => wants(subscription, event))
        .map((subscription) => ({ eventId: event.id, webhookId: subscription.id })),
    );
    const wanted = new Set(deliveries.map(({ eventId }) => eventId));
    await writePayloads(
      trx,
      events.filter(({ id }) => wanted.has(id)),
    );
    const unwanted = events.filter(({ id }) => !wanted.has(id)).map(({ id }) => id);
    if (unwanted.length > 0) await trx.deleteFrom('events').where('id', 'in', unwanted).execute();
    for (let start = 0; start < deliveries.length; start += ROWS_MAX) {
      await trx
        .insertInto('deliveries')
        .values(
          deliveries.slice(start, start + ROWS_MAX).map((delivery) => ({
            ...delivery,
            id: newId(random),
            createdAt: now,
            updatedAt: now,
            status: 'pending' as const,
            attemptCount: 0,
            failureCount: 0,
            dueAt: now,
            lease: null,
          })),
        )
        .execute();
    }
    for (const mail of await planMails(trx, events)) await mailer.accept(trx, mail);
  }

  async function planMails(trx: Database, events: readonly OpenEvent[]): Promise<readonly Mail[]> {
    const finished = events.filter(({ type }) => type === 'responseFinished');
    const surveys = await findBareSurveys(
      trx,
      finished.map(({ surveyId }) => surveyId),
    );
    const known = finished.flatMap(({ surveyId, response }) => {
      const survey = surveys.get(surveyId);
      return survey === undefined ? [] : [{ survey, response }];
    });
    return planFollowUps({ db: trx, limits, log }, known);
  }

  /** Uses few statements, because each one takes a round trip. */
  async function writePayloads(trx: Database, events: readonly OpenEvent[]): Promise<void> {
    let rows: RawBuilder<unknown>[] = [];
    let length = 0;
    for (const [i, event] of events.entries()) {
      const payload = payloadOf({ ...event, publicUrl: config.publicUrl });
      rows.push(sql`(${event.id}, ${payload})`);
      length += payload.length;
      if (length < STATEMENT_LENGTH_MAX && i < events.length - 1) continue;
      await sql`
        with "written" ("id", "payload") as (values ${sql.join(rows)})
        update "events" set "snapshot" = null,
          "payload" = (select "written"."payload" from "written" where "written"."id" = "events"."id")
        where "id" in (select "written"."id" from "written")`.execute(trx);
      rows = [];
      length = 0;
    }
  }
}

/** Reads events, oldest first, ties by id. */
async function readOutbox(db: Database): Promise<readonly OpenEvent[]> {
  const oldest = db
    .selectFrom('events')
    .select(['id', 'workspaceId', 'surveyId', 'type', 'snapshot'])
    .where('fannedOutAt', 'is', null)
    .orderBy('createdAt')
    .orderBy('id')
    .limit(BATCH);
  const rows = await unlocked(db, oldest).execute();
  const snapshots = rows.map(({ snapshot }): Snapshot => JSON.parse(snapshot ?? 'null'));
  const responses = await withRelations(
    db,
    snapshots.map(({ response }) => response),
  );
  return rows.flatMap((row, i) => {
    const survey = snapshots[i]?.survey;
    const response = responses[i];
    return survey === undefined || response === undefined ? [] : [{ ...row, survey, response }];
  });
}

async function claim(trx: Database, events: readonly OpenEvent[], now: string): Promise<void> {
  await trx
    .updateTable('events')
    .set({ fannedOutAt: now })
    .where(
      'id',
      'in',
      events.map(({ id }) => id),
    )
    .execute();
}

async function readSubscriptions(
  trx: Database,
  events: readonly OpenEvent[],
): Promise<readonly Subscription[]> {
  const workspaceIds = [...new Set(events.map(({ workspaceId }) => workspaceId))];
  if (workspaceIds.length === 0) return [];
  const webhooks = trx
    .selectFrom('webhooks')
    .select(['id', 'workspaceId', 'triggers', 'surveyIds'])
    .where('workspaceId', 'in', workspaceIds)
    .where('workspaceId', 'not in', deletingWorkspaces(trx))
    .orderBy('createdAt')
    .orderBy('id');
  const rows = await kept(trx, webhooks).execute();
  return rows.map((row) => ({
    ...row,
    triggers: JSON.parse(row.triggers),
    surveyIds: JSON.parse(row.surveyIds),
  }));
}

function wants(subscription: Subscription, event: OpenEvent): boolean {
  const { workspaceId, triggers, surveyIds } = subscription;
  return (
    workspaceId === event.workspaceId &&
    triggers.includes(event.type) &&
    (surveyIds.length === 0 || surveyIds.includes(event.surveyId))
  );
}

/**
 * Returns the JSON object that all webhooks of an event receive, with everything that old and new consumers read. It is
 * stored with the event, so that every attempt sends the same bytes. events/deliver.ts adds the id of the webhook.
 */
function payloadOf(event: {
  readonly type: EventType;
  readonly response: ResponseWithRelations;
  readonly survey: SurveySnapshot;
  readonly publicUrl: string;
}): string {
  const { type, response, survey, publicUrl } = event;
  return JSON.stringify({
    event: type,
    data: { ...toResponseReplyWithNotes(response, publicUrl), survey },
  });
}
