/** Records the result of an attempt: the delivery is delivered, due again later, or parked. */
import { unlocked } from '#api/db/locks.ts';
import type { Database, DeliveryTable } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import type { Attempt } from './deliver.ts';
import type { Leased } from './lease.ts';

/** Maximum number of attempts that are stored for a delivery, the newest ones. */
const ATTEMPTS_KEPT = 20;

/** `gone`: the delivery was deleted, or its lease expired and another worker has it. */
type Settlement = 'delivered' | 'pending' | 'parked' | 'gone';

interface SettleOptions {
  readonly attemptsMax: number;
  readonly random: Random;
}

type Counted = Pick<Leased, 'id' | 'lease' | 'attemptCount' | 'failureCount'>;

export async function settleDelivery(
  db: Database,
  { id, lease, attemptCount, failureCount }: Counted,
  attempt: Omit<Attempt, 'isHung'>,
  options: SettleOptions,
): Promise<Settlement> {
  const endedAt = attempt.startedAt + attempt.duration;
  const failures = attempt.isDelivered ? failureCount - 1 : failureCount;

  return db.transaction().execute(async (trx) => {
    const outcome = attempt.isDelivered
      ? { status: 'delivered' as const, dueAt: null }
      : isGone(attempt)
        ? parked
        : afterFailure(failures, endedAt, options, attempt.retryAfter);
    const { numUpdatedRows } = await trx
      .updateTable('deliveries')
      .set({
        ...outcome,
        attemptCount,
        failureCount: failures,
        updatedAt: toTimestamp(endedAt),
        lease: null,
      })
      .where('id', '=', id)
      .where('lease', '=', lease)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return 'gone';
    await trx
      .insertInto('deliveryAttempts')
      .values({
        deliveryId: id,
        number: attemptCount,
        startedAt: toTimestamp(attempt.startedAt),
        durationMs: attempt.duration,
        statusCode: attempt.statusCode,
        reply: attempt.reply,
        error: attempt.error,
        isPrivate: attempt.isPrivate ? 1 : 0,
      })
      // The last attempt may already be recorded, if it did not end, or if there were more attempts than are allowed.
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await keepLastAttempts(trx, id, attemptCount);
    return outcome.status;
  });
}

async function keepLastAttempts(trx: Database, id: string, attemptCount: number): Promise<void> {
  if (attemptCount <= ATTEMPTS_KEPT) return;
  await trx
    .deleteFrom('deliveryAttempts')
    .where('deliveryId', '=', id)
    .where('number', '<=', attemptCount - ATTEMPTS_KEPT)
    .execute();
}

/** @returns true if the last attempt was begun but not settled, because its process ended */
export function hasNoAttemptLeft({ failureCount }: Counted, attemptsMax: number): boolean {
  return failureCount > attemptsMax;
}

/** Parks a delivery that `hasNoAttemptLeft`. */
export function giveUp(
  db: Database,
  { attemptCount, failureCount, ...leased }: Counted,
  now: Millis,
  options: SettleOptions,
): Promise<Settlement> {
  return settleDelivery(
    db,
    { ...leased, attemptCount: attemptCount - 1, failureCount: failureCount - 1 },
    { ...failedAt(now), error: 'No attempt is left: the last one did not end, such as with its process' },
    options,
  );
}

/**
 * Counts a failure of all due deliveries to a receiver that hangs, without further attempts. So a backlog is parked as
 * it would be after attempts, and delays no other receiver.
 *
 * @param dueBefore start of the attempt that timed out
 * @returns the number of deliveries. If it equals `limit`, there may be more
 */
export async function failDue(
  db: Database,
  webhookId: string,
  { dueBefore, now }: { readonly dueBefore: Millis; readonly now: Millis },
  options: SettleOptions,
  limit: number,
): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const chosen = trx
      .selectFrom('deliveries')
      .select('id')
      .where('webhookId', '=', webhookId)
      .where('dueAt', '<=', toTimestamp(dueBefore))
      .orderBy('dueAt')
      .limit(limit);
    // Writing first keeps two processes from choosing the same rows.
    const due = await trx
      .updateTable('deliveries')
      .set((row) => ({
        lease: null,
        attemptCount: row('attemptCount', '+', 1),
        failureCount: row('failureCount', '+', 1),
        updatedAt: toTimestamp(now),
      }))
      .where('id', 'in', unlocked(trx, chosen))
      .where('dueAt', '<=', toTimestamp(dueBefore))
      .returning(['id', 'attemptCount', 'failureCount'])
      .execute();
    if (due.length === 0) return 0;
    for (const [failures, rows] of Map.groupBy(due, ({ failureCount }) => failureCount)) {
      await trx
        .updateTable('deliveries')
        .set(afterFailure(failures, now, options))
        .where(
          'id',
          'in',
          rows.map(({ id }) => id),
        )
        .execute();
    }
    await trx
      .insertInto('deliveryAttempts')
      .values(
        due.map(({ id, attemptCount }) => ({
          deliveryId: id,
          number: attemptCount,
          startedAt: toTimestamp(now),
          durationMs: 0,
          statusCode: null,
          reply: null,
          isPrivate: 0,
          error: 'Not sent: the receiver did not answer another delivery at this time',
        })),
      )
      .execute();
    for (const { id, attemptCount } of due) await keepLastAttempts(trx, id, attemptCount);
    return due.length;
  });
}

/** Whether the receiver says that it wants nothing any more. Standard Webhooks asks senders to stop then. */
function isGone({ statusCode }: Pick<Attempt, 'statusCode'>): boolean {
  return statusCode === 410;
}

const parked = { status: 'parked', dueAt: null } as const;

/** @param retryAfter the pause that the receiver asks for; it makes the usual one longer, and never shorter */
function afterFailure(
  failures: number,
  now: Millis,
  { attemptsMax, random }: SettleOptions,
  retryAfter: string | null = null,
): Pick<DeliveryTable, 'dueAt'> & { readonly status: 'pending' | 'parked' } {
  if (failures >= attemptsMax) return parked;
  const pause = Math.max(retryDelay(failures, random), askedPause(retryAfter, now));
  return { status: 'pending', dueAt: toTimestamp(now + pause) };
}

/** Reads `Retry-After`, seconds or a date (RFC 9110 10.2.3). @returns 0 if it is absent or unreadable; at most an hour */
function askedPause(retryAfter: string | null, now: Millis): Millis {
  if (retryAfter === null) return 0;
  const pause = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - now;
  return Number.isNaN(pause) ? 0 : Math.min(pause, RETRY_LONGEST);
}

function failedAt(now: Millis) {
  const none = { statusCode: null, reply: null, retryAfter: null };
  return { isDelivered: false, ...none, isPrivate: false, startedAt: now, duration: 0 };
}

const RETRY_FIRST: Millis = 5_000;
const RETRY_LONGEST: Millis = 3_600_000;
/** A random delay of up to this share is added, so that deliveries that failed together do not return together. */
const JITTER = 0.2;

/** Returns 5 s, then 10 s, doubling up to an hour. @param failureCount failures so far, at least 1 */
export function retryDelay(failureCount: number, random: Random): Millis {
  const plain = Math.min(RETRY_FIRST * 2 ** (failureCount - 1), RETRY_LONGEST);
  return Math.round(plain * (1 + JITTER * fraction(random)));
}

/** Returns a random number, at least 0 and less than 1. */
function fraction(random: Random): number {
  return Buffer.from(random(4)).readUInt32BE(0) / 2 ** 32;
}
