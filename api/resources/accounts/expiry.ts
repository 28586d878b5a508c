/**
 * Deletes accounts whose address nobody ever verified, unless they have a valid link, or belong to an organization. A
 * sign-up makes no organization; the verification does, and nobody logs in before.
 */
import type { ExpressionBuilder } from 'kysely';
import { unlocked } from '#api/db/locks.ts';
import type { Database, Tables, Timestamp } from '#api/db/schema.ts';
import { inSlices } from '#api/db/slices.ts';

interface Times {
  /** Accounts are deleted if they were last changed before this time, at sign-up or by a new password. */
  readonly before: Timestamp;
  readonly now: Timestamp;
}

/** @returns the number of deleted accounts */
export async function endUnverifiedAccounts(
  db: Database,
  times: Times,
  isStopping: () => boolean = () => false,
): Promise<number> {
  let ended = 0;
  await inSlices(
    (rowsMax) =>
      db.transaction().execute(async (trx) => {
        const found = await unlocked(trx, unusedAccounts(trx, times, rowsMax)).execute();
        if (found.length === 0) return 0;
        // Checks again, because an account may have been used before it was locked.
        const { numDeletedRows } = await trx
          .deleteFrom('users')
          .where(
            'id',
            'in',
            found.map(({ id }) => id),
          )
          .where(isUnused(times))
          .executeTakeFirst();
        ended += Number(numDeletedRows);
        return found.length;
      }),
    isStopping,
  );
  return ended;
}

export function unusedAccounts(db: Database, times: Times, rowsMax: number) {
  return db.selectFrom('users').select('id').where(isUnused(times)).orderBy('id').limit(rowsMax);
}

function isUnused({ before, now }: Times) {
  return (user: ExpressionBuilder<Tables, 'users'>) => {
    const { selectFrom } = user;
    const traces = [
      selectFrom('memberships').select('userId').whereRef('memberships.userId', '=', 'users.id'),
      selectFrom('accountTokens')
        .select('userId')
        .whereRef('accountTokens.userId', '=', 'users.id')
        .where('accountTokens.expiresAt', '>', now),
    ];
    return user.and([
      user('emailVerified', 'is', null),
      user('updatedAt', '<', before),
      ...traces.map((trace) => user.not(user.exists(trace))),
    ]);
  };
}
