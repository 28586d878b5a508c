/**
 * Events tell webhooks what happened to responses. docs/events.md describes them for receivers.
 *
 * - An *event* is written here, in the transaction of its change, so that either both exist or neither.
 * - Fan-out (jobs/fan-out.ts) turns it into one *delivery* for each webhook that wants it, with the body for all
 *   attempts.
 * - A worker *leases* due deliveries (lease.ts), makes an *attempt* at each (deliver.ts) and *settles* it (settle.ts):
 *   delivered, due again later, or *parked*: there are no further attempts.
 * - If the process dies before it settles a lease, the lease expires and the delivery is due again. So a delivery arrives
 *   at least once, and its id tells a receiver whether it has seen it.
 * - Settled deliveries are stored for a while (retention.ts).
 *
 * Code that changes a response writes its events in the transaction, and calls `context.outbox.notify()` after it. If the
 * process dies between the two, the next poll of any process finds the event.
 *
 * @example
 *   const hasEvents = await recordEvents(trx, parts, written); // with the change, in its transaction
 *   if (hasEvents) outbox.notify(); // after the commit
 */
import type { Database, EventType, Timestamp } from '#api/db/schema.ts';
import { newId, type Random } from '#api/values/ids.ts';

interface NewEvents {
  readonly types: readonly EventType[];
  readonly workspaceId: string;
  readonly surveyId: string;
  readonly responseId: string;
  /** JSON with the data that later changes must not alter. */
  readonly snapshot: string;
  readonly createdAt: Timestamp;
}

/** Call it within the transaction of the change, after the change. */
export async function insertEvents(
  trx: Database,
  { types, ...event }: NewEvents,
  random: Random,
): Promise<void> {
  await trx
    .insertInto('events')
    .values(types.map((type) => ({ ...event, id: newId(random), type, payload: null, fannedOutAt: null })))
    .execute();
}
