/**
 * From events to deliveries.
 *
 * 1. Read the oldest events of the outbox, and what their payloads show of other rows.
 * 2. Spend the limit of the follow-up mails; this may ask another server.
 * 3. Claim the events, make a delivery for each webhook that wants one, enqueue the mails.
 *
 * With one writer, only the third step is a transaction, because all others would wait for the second one. Several
 * processes may then read the same events; only the one whose claim comes first goes on with them. With many writers all
 * is one transaction, and each process takes events that no other one is at. A crash before the commit leaves them in
 * the outbox. Webhooks are those that exist at this moment.
 */
import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely';
import type { Context } from '#api/context.ts';
import { hasManyWriters, kept, unlocked } from '#api/db/locks.ts';
import type { Database, EventTable, EventType } from '#api/db/schema.ts';
import { newId } from '#api/ids.ts';
import type { Mail } from '#api/mail/mail.ts';
import type { Snapshot } from '#api/resources/responses/record-events.ts';
import { type ResponseWithRelations, withRelations } from '#api/resources/responses/store.ts';
import { findBareSurveys } from '#api/resources/surveys/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { type FollowUpLog, planFollowUps } from './follow-ups.ts';
import { payloadOf } from './payload.ts';

/** Events of one transaction: few enough that requests do not wait for it. */
const BATCH = 50;
/** Rows of one insert: databases bound the parameters of a statement. */
const ROWS_MAX = 500;
/** Characters of payloads in one statement, but for the last of them: few are longer than a thousand. */
const STATEMENT_LENGTH_MAX = 1_048_576;

interface OpenEvent extends Pick<Selectable<EventTable>, 'id' | 'workspaceId' | 'surveyId' | 'type'> {
  readonly survey: Snapshot['survey'];
  readonly response: ResponseWithRelations;
}

interface Subscription {
  readonly id: string;
  readonly workspaceId: string;
  readonly triggers: readonly EventType[];
  /** Empty: all surveys. */
  readonly surveyIds: readonly string[];
}

/** By the id of the event. */
type PlannedMails = ReadonlyMap<string, readonly Mail[]>;

export type FanOutParts = Pick<Context, 'db' | 'clock' | 'random' | 'config' | 'limits' | 'mailer'>;

/** @returns how many events were there, 0 when the outbox is empty */
export async function fanOut(
  { db, clock, random, config, limits, mailer }: FanOutParts,
  log: FollowUpLog,
): Promise<number> {
  if (hasManyWriters(db)) {
    return db.transaction().execute(async (trx) => {
      const events = await readOutbox(trx);
      await write(trx, events, await planMails(trx, events));
      return events.length;
    });
  }
  const events = await readOutbox(db);
  const planned = await planMails(db, events);
  if (events.length > 0) await db.transaction().execute((trx) => write(trx, events, planned));
  return events.length;

  async function planMails(reader: Kysely<Database>, events: readonly OpenEvent[]): Promise<PlannedMails> {
    const mails = new Map<string, readonly Mail[]>();
    const finished = events.filter(({ type }) => type === 'responseFinished');
    const surveys = await findBareSurveys(
      reader,
      finished.map(({ surveyId }) => surveyId),
    );
    for (const { id, surveyId, response } of finished) {
      const survey = surveys.get(surveyId);
      if (survey !== undefined) {
        mails.set(id, await planFollowUps({ db: reader, limits, log }, survey, response));
      }
    }
    return mails;
  }

  async function write(
    trx: Kysely<Database>,
    events: readonly OpenEvent[],
    mails: PlannedMails,
  ): Promise<void> {
    if (events.length === 0) return;
    const now = toTimestamp(clock());
    const claimed = await claim(trx, events, now);
    const subscriptions = await readSubscriptions(trx, claimed);
    const deliveries = claimed.flatMap((event) =>
      subscriptions
        .filter((subscription) => wants(subscription, event))
        .map((subscription) => ({ eventId: event.id, webhookId: subscription.id })),
    );
    const wanted = new Set(deliveries.map(({ eventId }) => eventId));
    await writePayloads(
      trx,
      claimed.filter(({ id }) => wanted.has(id)),
    );
    const unwanted = claimed.filter(({ id }) => !wanted.has(id)).map(({ id }) => id);
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
    for (const { id } of claimed) {
      for (const mail of mails.get(id) ?? []) await mailer.accept(trx, mail);
    }
  }

  /** In a few statements: over a network each one is a wait. */
  async function writePayloads(trx: Kysely<Database>, events: readonly OpenEvent[]): Promise<void> {
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

/** The oldest first, ties by id. */
async function readOutbox(db: Kysely<Database>): Promise<readonly OpenEvent[]> {
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

/** A write comes first: a transaction that reads first could not go on after another process wrote. */
async function claim(
  trx: Kysely<Database>,
  events: readonly OpenEvent[],
  now: string,
): Promise<readonly OpenEvent[]> {
  const rows = await trx
    .updateTable('events')
    .set({ fannedOutAt: now })
    .where(
      'id',
      'in',
      events.map(({ id }) => id),
    )
    .where('fannedOutAt', 'is', null)
    .returning('id')
    .execute();
  const ids = new Set(rows.map(({ id }) => id));
  return events.filter(({ id }) => ids.has(id));
}

async function readSubscriptions(
  trx: Kysely<Database>,
  events: readonly OpenEvent[],
): Promise<readonly Subscription[]> {
  const workspaceIds = [...new Set(events.map(({ workspaceId }) => workspaceId))];
  if (workspaceIds.length === 0) return [];
  const webhooks = trx
    .selectFrom('webhooks')
    .select(['id', 'workspaceId', 'triggers', 'surveyIds'])
    .where('workspaceId', 'in', workspaceIds)
    .orderBy('createdAt')
    .orderBy('id');
  const rows = await kept(trx, webhooks).execute();
  return rows.map((row) => ({
    ...row,
    triggers: JSON.parse(row.triggers),
    surveyIds: JSON.parse(row.surveyIds),
  }));
}

/** Of its workspace, for its type of event, and for its survey unless it asks for all. */
function wants(subscription: Subscription, event: OpenEvent): boolean {
  const { workspaceId, triggers, surveyIds } = subscription;
  return (
    workspaceId === event.workspaceId &&
    triggers.includes(event.type) &&
    (surveyIds.length === 0 || surveyIds.includes(event.surveyId))
  );
}
