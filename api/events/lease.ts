/**
 * Leases due deliveries to this process. If the process dies, the lease expires and the delivery is due again: `dueAt`
 * is the column for both, so one index is enough and nothing has to clean up. An attempt counts as failed from its
 * lease until it is settled, so a delivery can crash the process only a limited number of times.
 *
 * The worker visits the webhooks that have due deliveries in turn (turns.ts), and leases for each at most as many as it
 * may attempt in parallel. The backlog of a webhook is not read to find the others: each step goes to the next webhook in
 * the index.
 */
import { type NotNull, type RawBuilder, sql } from 'kysely';
import { unlocked } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { STEP_MS } from '#api/work/clock-step.ts';
import type { Millis } from '#shared/clock.ts';
import type { Reach } from './targets.ts';

/** The number of webhooks in one step. */
const HEADS_MAX = 200;

export interface Leased {
  readonly id: string;
  readonly lease: string;
  readonly webhookId: string;
  readonly workspaceId: string;
  readonly url: string;
  readonly secret: string;
  readonly payload: string;
  readonly reach: Reach;
  readonly attemptCount: number;
  /** Number of failures. It includes this attempt, which counts as failed until it is settled. */
  readonly failureCount: number;
}

/** A webhook with due deliveries. */
export interface Head {
  readonly webhookId: string;
  readonly workspaceId: string;
  readonly organizationId: string;
  readonly url: string;
}

interface HeadRow extends Head {
  readonly dueAt: Timestamp;
  /** Not null: nothing more is sent, see resources/organizations/deletion.ts. */
  readonly deletingAt: Timestamp | null;
}

/**
 * Returns a query for webhooks with due deliveries. Each step is one lookup in `deliveries_due`, however many
 * deliveries a webhook has.
 */
export function headsQuery(after: string, limit: number): RawBuilder<HeadRow> {
  return sql<HeadRow>`
    with recursive heads ("webhookId") as (
      select (
        select "webhookId" from "deliveries"
        where "dueAt" is not null and "webhookId" > ${after}
        order by "webhookId" limit 1
      )
      union all
      select (
        select "deliveries"."webhookId" from "deliveries"
        where "deliveries"."dueAt" is not null and "deliveries"."webhookId" > heads."webhookId"
        order by "deliveries"."webhookId" limit 1
      )
      from heads where heads."webhookId" is not null
    )
    select w."id" as "webhookId", w."workspaceId" as "workspaceId", s."organizationId" as "organizationId", w."url" as "url",
    s."deletingAt" as "deletingAt", (
      select min("dueAt") from "deliveries"
      where "deliveries"."webhookId" = h."webhookId" and "deliveries"."dueAt" is not null
    ) as "dueAt"
    from (select "webhookId" from heads where "webhookId" is not null limit ${limit}) as h
    join "webhooks" as w on w."id" = h."webhookId"
    join "workspaces" as s on s."id" = w."workspaceId"
    order by w."id"`;
}

/**
 * Finds the next webhooks with due deliveries.
 *
 * @param after the webhook where the last step ended, '' for the beginning
 * @returns the webhooks, and where the next step begins; null at the end
 */
export async function findHeads(
  db: Database,
  after: string,
  now: Timestamp,
  limit = HEADS_MAX,
): Promise<{ readonly due: readonly Head[]; readonly next: string | null }> {
  const { rows } = await headsQuery(after, limit).execute(db);
  return {
    due: rows.filter(({ deletingAt, dueAt }) => deletingAt === null && dueAt <= now),
    next: rows.length < limit ? null : (rows.at(-1)?.webhookId ?? null),
  };
}

export function leaseQuery(
  db: Database,
  wanted: { readonly webhookId: string; readonly count: number; readonly now: Timestamp },
  lease: { readonly name: string; readonly until: Timestamp },
) {
  const due = db
    .selectFrom('deliveries')
    .select('id')
    .where('webhookId', '=', wanted.webhookId)
    .where('dueAt', '<=', wanted.now)
    .orderBy('dueAt')
    .limit(wanted.count);
  return (
    db
      // The planner must choose once: rows that no other process is leasing now.
      .with('due', () => unlocked(db, due))
      .updateTable('deliveries')
      .set((row) => ({
        dueAt: lease.until,
        updatedAt: wanted.now,
        lease: lease.name,
        attemptCount: row('attemptCount', '+', 1),
        failureCount: row('failureCount', '+', 1),
      }))
      .where('id', 'in', (from) => from.selectFrom('due').select('due.id'))
      // Some databases let two updates choose the same rows. Then the second one finds them leased.
      .where('dueAt', '<=', wanted.now)
      .returning('id')
  );
}

export async function leaseDeliveries(
  db: Database,
  wanted: { readonly webhookId: string; readonly count: number; readonly now: Timestamp },
  lease: { readonly name: string; readonly until: Timestamp },
): Promise<readonly Leased[]> {
  const ids = (await leaseQuery(db, wanted, lease).execute()).map(({ id }) => id);
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom('deliveries')
    .innerJoin('webhooks', 'webhooks.id', 'deliveries.webhookId')
    .innerJoin('events', 'events.id', 'deliveries.eventId')
    .innerJoin('workspaces', 'workspaces.id', 'webhooks.workspaceId')
    .innerJoin('organizations', 'organizations.id', 'workspaces.organizationId')
    .select([
      'deliveries.id',
      'deliveries.webhookId',
      'deliveries.attemptCount',
      'deliveries.failureCount',
      'webhooks.workspaceId',
      'webhooks.url',
      'webhooks.secret',
      'events.payload',
      'organizations.isOperators',
    ])
    .where('deliveries.id', 'in', ids)
    .where('workspaces.deletingAt', 'is', null)
    // Fan-out writes the payload before the deliveries.
    .where('events.payload', 'is not', null)
    .$narrowType<{ payload: NotNull }>()
    .orderBy('deliveries.createdAt')
    .execute();
  return rows.map(({ isOperators, ...row }) => ({
    ...row,
    lease: lease.name,
    reach: isOperators === 1 ? 'operators' : 'public',
  }));
}

/**
 * Makes deliveries due that were written at a later time than now, because the clock was set back since. Those that are
 * leased keep their lease for as long as a new one lasts.
 */
export async function mendDueTimes(db: Database, now: Millis, leaseMs: Millis): Promise<void> {
  const leasedUntil = toTimestamp(now + leaseMs);
  await db
    .updateTable('deliveries')
    .set((row) => ({
      updatedAt: toTimestamp(now),
      dueAt: row.case().when('lease', 'is', null).then(toTimestamp(now)).else(leasedUntil).end(),
    }))
    .where('dueAt', 'is not', null)
    .where('updatedAt', '>', toTimestamp(now + STEP_MS))
    .execute();
}
