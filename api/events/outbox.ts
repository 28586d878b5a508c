/**
 * Events tell webhooks what happened to responses. docs/events.md describes them for receivers.
 *
 * - An *event* is written here with its body, in the transaction of its change, so that either both exist or neither. So is
 *   a *delivery* for each webhook that wants it.
 * - A worker (worker.ts) leases due deliveries (db/queue.ts), makes an *attempt* at each and settles it (deliveries.ts):
 *   delivered, due again later, or *parked*: there are no further attempts.
 * - If the process dies before it settles a lease, the lease expires and the delivery is due again. So a delivery arrives
 *   at least once, and its id tells a receiver whether it has seen it.
 * - Settled deliveries are stored for a while (retention.ts).
 *
 * Code that changes a response writes its events in the transaction, and calls `context.outbox.notify()` after it. If the
 * process dies between the two, the next poll of any process finds the deliveries.
 *
 * @example
 *   const hasEvents = await recordEvents(trx, parts, written); // with the change, in its transaction
 *   if (hasEvents) outbox.notify(); // after the commit
 */
import type { Database, EventType } from '#api/db/schema.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock } from '#shared/clock.ts';

interface NewEvents {
  readonly types: readonly EventType[];
  readonly workspaceId: string;
  readonly surveyId: string;
  readonly responseId: string;
  /** The type whose event follow-up mails are made from; null without such mails. */
  readonly mailsOn: EventType | null;
  /** Returns the JSON object that all webhooks receive, which every attempt sends as it is. */
  readonly payloadOf: (type: EventType) => string;
}

/**
 * Writes the events that a webhook or a follow-up mail wants. Call it within the transaction of the change, after the
 * change.
 *
 * @returns whether there are any
 */
export async function insertEvents(
  trx: Database,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { types, mailsOn, payloadOf, ...of }: NewEvents,
): Promise<boolean> {
  const now = toTimestamp(clock());
  const webhooks = await trx
    .selectFrom('webhooks')
    .select(['id', 'triggers', 'surveyIds'])
    .where('workspaceId', '=', of.workspaceId)
    .execute();
  const events = types.flatMap((type) => {
    const wanting = webhooks.filter(
      ({ surveyIds, triggers }) =>
        lists(triggers, type) && (surveyIds === '[]' || lists(surveyIds, of.surveyId)),
    );
    const hasMails = type === mailsOn;
    if (wanting.length === 0 && !hasMails) return [];
    const mailsDueAt = hasMails ? now : null;
    const row = { ...of, id: newId(random), createdAt: now, type, payload: payloadOf(type), mailsDueAt };
    return [{ row, wanting }];
  });
  if (events.length === 0) return false;
  await trx
    .insertInto('events')
    .values(events.map(({ row }) => row))
    .execute();
  const deliveries = events.flatMap(({ row, wanting }) =>
    wanting.map(({ id: webhookId }) => ({
      id: newId(random),
      createdAt: now,
      updatedAt: now,
      eventId: row.id,
      webhookId,
      status: 'pending' as const,
      attemptCount: 0,
      failureCount: 0,
      dueAt: now,
      lease: null,
    })),
  );
  if (deliveries.length > 0) await trx.insertInto('deliveries').values(deliveries).execute();
  return true;
}

/** Whether a JSON list, as webhooks store it, has the value. */
function lists(json: string, value: string): boolean {
  const list: unknown = JSON.parse(json);
  return Array.isArray(list) && list.includes(value);
}

/** Wakes the worker of this process. A lost call delays an event, but never loses one. */
export interface Signal {
  notify(): void;
  /** Replaces the listener. */
  listen(listener: () => void): void;
}

export function createSignal(): Signal {
  let current = (): void => {};
  return {
    notify: () => current(),
    listen(listener) {
      current = listener;
    },
  };
}
