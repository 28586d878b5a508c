/**
 * Takes due deliveries for this process, for a time. Who dies meanwhile leaves a lease that runs out, and then the
 * delivery is due again: `dueAt` is one column for both, so that one index serves and nobody has to sweep up. The attempt
 * counts from here, as failed until it is settled: a delivery that takes the process down with it does so a bounded
 * number of times.
 *
 * Fairness: the webhooks that have something due are visited one after the other, and each gives at most as many
 * deliveries as it may have attempts under way. A receiver that hangs takes up its own share and that of its workspace,
 * nobody else's, and its backlog is not read to find the work of others: the walk goes from webhook to webhook in the
 * index.
 */
import { type Kysely, type NotNull, type RawBuilder, sql } from 'kysely';
import { unlocked } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import type { Reach } from './targets.ts';

/** Webhooks of one step of the walk. */
const HEADS_MAX = 200;

export interface Leased {
  readonly id: string;
  readonly lease: string;
  readonly webhookId: string;
  readonly workspaceId: string;
  readonly url: string;
  readonly secret: string | null;
  readonly payload: string;
  /** This attempt included. */
  readonly reach: Reach;
  readonly attemptCount: number;
  /** Likewise: an attempt counts as failed until it is settled. */
  readonly failureCount: number;
}

/** A webhook that has deliveries waiting. */
export interface Head {
  readonly webhookId: string;
  readonly workspaceId: string;
  readonly url: string;
}

interface HeadRow extends Head {
  /** When the first of its deliveries is due. */
  readonly dueAt: Timestamp;
}

/** Each step is one look into `deliveries_due`, however many deliveries a webhook has waiting. */
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
    select w."id" as "webhookId", w."workspaceId" as "workspaceId", w."url" as "url", (
      select min("dueAt") from "deliveries"
      where "deliveries"."webhookId" = h."webhookId" and "deliveries"."dueAt" is not null
    ) as "dueAt"
    from (select "webhookId" from heads where "webhookId" is not null limit ${limit}) as h
    join "webhooks" as w on w."id" = h."webhookId"
    order by w."id"`;
}

/**
 * One step of the walk.
 *
 * @param after the webhook where the last step ended, '' for the beginning
 * @returns those that have something due, and where to go on; null at the end
 */
export async function findHeads(
  db: Kysely<Database>,
  after: string,
  now: Timestamp,
  limit = HEADS_MAX,
): Promise<{ readonly due: readonly Head[]; readonly next: string | null }> {
  const { rows } = await headsQuery(after, limit).execute(db);
  return {
    due: rows.filter(({ dueAt }) => dueAt <= now),
    next: rows.length < limit ? null : (rows.at(-1)?.webhookId ?? null),
  };
}

export function leaseQuery(
  db: Kysely<Database>,
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
      // Chosen once, whatever the planner thinks of it: those that nobody else is leasing at this moment.
      .with('due', () => unlocked(db, due))
      .updateTable('deliveries')
      .set((row) => ({
        dueAt: lease.until,
        lease: lease.name,
        attemptCount: row('attemptCount', '+', 1),
        failureCount: row('failureCount', '+', 1),
      }))
      .where('id', 'in', (from) => from.selectFrom('due').select('due.id'))
      // Said again for databases that let two updates choose the same rows: the second one finds them taken.
      .where('dueAt', '<=', wanted.now)
      .returning('id')
  );
}

/** The longest due first. What is returned is this caller's until `lease.until`. */
export async function leaseDeliveries(
  db: Kysely<Database>,
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
    // Fan-out writes it before the deliveries.
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
