/**
 * Events: what happened to responses, on its way to webhooks. docs/events.md tells the same to receivers.
 *
 * - An *event* is written here, in the transaction of the change it tells of: either both are there or neither.
 * - Fan-out (jobs/fan-out.ts) turns it into one *delivery* per webhook that wants it, with the body that all attempts share.
 * - A worker *leases* due deliveries (lease.ts), makes an *attempt* at each (deliver.ts) and *settles* it (settle.ts):
 *   delivered, due again later, or *parked* until somebody asks for it again (redeliver.ts).
 * - A lease that is not settled, because the process died, runs out; then the delivery is due again. So a delivery
 *   arrives at least once, and its id tells a receiver whether it has seen it.
 * - What is settled is kept for a while to be looked at (retention.ts).
 *
 * Whoever changes a response writes its events inside the transaction and calls `context.outbox.notify()` after it.
 * Should the process end between the two, the next poll of any process finds the event.
 */
import type { Kysely } from 'kysely';
import type { Database, EventType, Timestamp } from '#api/db/schema.ts';
import { newId, type Random } from '#api/ids.ts';

interface NewEvents {
  readonly types: readonly EventType[];
  readonly workspaceId: string;
  readonly surveyId: string;
  readonly responseId: string;
  /** JSON: what later changes must not alter any more. */
  readonly snapshot: string;
  readonly createdAt: Timestamp;
}

/** Call it in the transaction of the change, after the change. */
export async function insertEvents(
  trx: Kysely<Database>,
  { types, ...event }: NewEvents,
  random: Random,
): Promise<void> {
  await trx
    .insertInto('events')
    .values(types.map((type) => ({ ...event, id: newId(random), type, payload: null, fannedOutAt: null })))
    .execute();
}
