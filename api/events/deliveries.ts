/** The queue of deliveries to webhooks: which get a place, what an attempt needs, and what its result changes. */
import { type RawBuilder, sql } from 'kysely';
import { type Leased, pauseAfter, settle } from '#api/db/queue.ts';
import type { Database, DeliveryTable } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import type { SendResult } from './sender.ts';
import type { Reach } from './targets.ts';

/** A leased delivery with what an attempt needs. */
export interface Delivery extends Leased {
  readonly webhookId: string;
  readonly url: string;
  readonly secret: string;
  readonly payload: string;
  readonly reach: Reach;
}

export interface Attempt extends SendResult {
  readonly startedAt: Millis;
  readonly duration: Millis;
}

/** Attempts in progress in one process. */
export const PLACES = 128;
/** Attempts in progress at one webhook, so that one that hangs delays no other. */
const PER_WEBHOOK = 4;
/** Attempts in progress of one organization, however many webhooks it has. It is a quarter of the places of a process. */
const PER_ORGANIZATION = 32;
/** The share of receivers that are slow, or of which nothing is known. The last quarter is kept for quick ones. */
const SLOW_OF_ALL = 96;
/** A receiver whose last answer took longer is slow, because each attempt holds its place longer. */
const QUICK_MS: Millis = 1_000;
/** Number of attempts without any answer, in a row, after which the webhook pauses. */
const HANGS_MAX = 3;
/** The first pause. Each further one is twice as long, up to the longest. */
const PAUSE_MS: Millis = 10_000;
const PAUSE_MS_MAX: Millis = 60_000;
const RETRIES = { firstMs: 5_000, maxMs: 3_600_000, jitter: 0.2 };

/**
 * Selects deliveries that get a place now. Those that are in progress, in any process, come first in each count (`waits` is
 * 0), so that the counts bound both together.
 *
 * Free places go to the organizations in turn, in each of them to the webhooks in turn, and then to the oldest delivery.
 * The query reads only the first index entries of each webhook, whatever its backlog.
 */
export function dueDeliveries(time: Millis, places: number): RawBuilder<{ readonly id: string }> {
  const now = toTimestamp(time);
  // A pause that ends later than the longest was written before the clock was set back.
  const latest = toTimestamp(time + PAUSE_MS_MAX);
  const oldestOfEach = Array.from(
    { length: PER_WEBHOOK },
    (_, place) => sql`
      select d."id", d."webhookId", d."dueAt", r."organizationId", r."isQuick", 1 as "waits"
      from "ready" as r join "deliveries" as d on d."id" = (
        select n."id" from "deliveries" as n where n."webhookId" = r."id" and n."dueAt" <= ${now}
        order by n."dueAt" limit 1 offset ${sql.lit(place)})`,
  );
  return sql`
    with "ready" as materialized (
      select w."id", s."organizationId", w."isQuick"
      from "webhooks" as w join "workspaces" as s on s."id" = w."workspaceId"
      where s."deletingAt" is null
        and (w."pausedUntil" is null or w."pausedUntil" <= ${now} or w."pausedUntil" > ${latest})
        and exists (select 1 from "deliveries" as d where d."webhookId" = w."id" and d."dueAt" <= ${now})
    ), "counted" as (
      select d."id", d."webhookId", d."dueAt", s."organizationId", w."isQuick", 0 as "waits"
      from "deliveries" as d
      join "webhooks" as w on w."id" = d."webhookId" join "workspaces" as s on s."id" = w."workspaceId"
      where d."lease" is not null and d."dueAt" > ${now}
      union all ${sql.join(oldestOfEach, sql` union all `)}
    ), "ofWebhook" as (
      select "counted".*, row_number() over (partition by "webhookId" order by "waits", "dueAt", "id") as "turn"
      from "counted"
    ), "ofOrganization" as (
      select "ofWebhook".*,
        row_number() over (partition by "organizationId" order by "waits", "turn", "dueAt", "id") as "place"
      from "ofWebhook" where "waits" = 0 or "turn" <= ${sql.lit(PER_WEBHOOK)}
    ), "ofAll" as (
      select "id", "isQuick", "waits", "dueAt", "place",
        row_number() over (partition by "isQuick" order by "waits", "place", "dueAt", "id") as "placeOfKind"
      from "ofOrganization" where "waits" = 0 or "place" <= ${sql.lit(PER_ORGANIZATION)}
    )
    select "id" from "ofAll" where "waits" = 1 and ("isQuick" = 1 or "placeOfKind" <= ${sql.lit(SLOW_OF_ALL)})
    order by "place", "dueAt", "id" limit ${places}`;
}

/** Adds what an attempt needs. */
export async function loadDeliveries(db: Database, leased: readonly Leased[]): Promise<readonly Delivery[]> {
  const byId = new Map(leased.map((one) => [one.id, one]));
  const rows = await db
    .selectFrom('deliveries')
    .innerJoin('webhooks', 'webhooks.id', 'deliveries.webhookId')
    .innerJoin('events', 'events.id', 'deliveries.eventId')
    .innerJoin('workspaces', 'workspaces.id', 'webhooks.workspaceId')
    .innerJoin('organizations', 'organizations.id', 'workspaces.organizationId')
    .select(['deliveries.id', 'deliveries.webhookId', 'webhooks.url', 'webhooks.secret'])
    .select(['events.payload', 'organizations.isOperators'])
    .where('deliveries.id', 'in', [...byId.keys()])
    .where('workspaces.deletingAt', 'is', null)
    .execute();
  return rows.flatMap(({ isOperators, ...row }) => {
    const one = byId.get(row.id);
    return one === undefined ? [] : [{ ...one, ...row, reach: isOperators === 1 ? 'operators' : 'public' }];
  });
}

/** `gone`: the delivery was deleted, or its lease has expired and another process has it. */
type Settlement = DeliveryTable['status'] | 'gone';

/** Records an attempt: the delivery is delivered, due again later, or parked, and the webhook may pause. */
export function settleDelivery(
  db: Database,
  delivery: Delivery,
  attempt: Attempt,
  options: { readonly attemptsMax: number; readonly random: Random },
): Promise<Settlement> {
  const { attemptCount: number, failureCount, id: deliveryId } = delivery;
  const { duration: durationMs, error, isDelivered, reply, startedAt, statusCode } = attempt;
  const endedAt = startedAt + durationMs;
  return db.transaction().execute(async (trx) => {
    await noteReceiver(trx, delivery.webhookId, attempt, endedAt);
    const outcome = isDelivered
      ? ({ status: 'delivered', dueAt: null, failureCount: failureCount - 1 } as const)
      : afterFailure(failureCount, attempt, endedAt, options);
    if (!(await settle(trx, 'deliveries', delivery, endedAt, outcome))) return 'gone';
    const row = {
      deliveryId,
      number,
      startedAt: toTimestamp(startedAt),
      durationMs,
      statusCode,
      reply,
      error,
    };
    await trx.insertInto('deliveryAttempts').values(row).execute();
    return outcome.status;
  });
}

/** A receiver that gives no answer pauses its webhook, for all processes. Any answer ends that, even a refusal. */
async function noteReceiver(
  trx: Database,
  webhookId: string,
  { duration, isHung }: Attempt,
  now: Millis,
): Promise<void> {
  const webhook = trx.updateTable('webhooks').where('id', '=', webhookId);
  if (!isHung) {
    const isQuick = duration <= QUICK_MS ? 1 : 0;
    // Usually nothing has changed, so nothing is written.
    await webhook
      .set({ isQuick, hangs: 0, pausedUntil: null })
      .where(({ eb, or }) => or([eb('hangs', '>', 0), eb('isQuick', '<>', isQuick)]))
      .execute();
    return;
  }
  const row = await webhook
    .set(({ eb }) => ({ isQuick: 0, hangs: eb('hangs', '+', 1) }))
    .returning('hangs')
    .executeTakeFirst();
  const hangs = row?.hangs ?? 0;
  if (hangs < HANGS_MAX) return;
  const pauseMs = Math.min(PAUSE_MS * 2 ** (hangs - HANGS_MAX), PAUSE_MS_MAX);
  await webhook.set({ pausedUntil: toTimestamp(now + pauseMs) }).execute();
}

function afterFailure(
  failures: number,
  { retryAfter, statusCode }: Attempt,
  now: Millis,
  { attemptsMax, random }: { readonly attemptsMax: number; readonly random: Random },
) {
  // Standard Webhooks asks senders to stop after a 410.
  if (failures >= attemptsMax || statusCode === 410) return { status: 'parked', dueAt: null } as const;
  // The pause that the receiver asks for makes the usual one longer, and never shorter.
  const pause = Math.max(pauseAfter(failures, RETRIES, random), askedPause(retryAfter, now));
  return { status: 'pending', dueAt: toTimestamp(now + pause) } as const;
}

/** Reads `Retry-After`, seconds or a date (RFC 9110 10.2.3). @returns 0 if it is absent or unreadable; at most an hour */
function askedPause(retryAfter: string | null, now: Millis): Millis {
  if (retryAfter === null) return 0;
  const pause = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - now;
  return Number.isNaN(pause) ? 0 : Math.min(pause, RETRIES.maxMs);
}
