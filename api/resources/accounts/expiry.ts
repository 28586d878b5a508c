/**
 * Deletes accounts whose address nobody ever verified, unless they have a valid link, or belong to an organization. A
 * sign-up makes no organization; the verification does, and nobody logs in before.
 */
import { expressionBuilder } from 'kysely';
import { unlocked } from '#api/db/locks.ts';
import type { Database, Tables, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';

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
  await inSlices(async (rowsMax) => {
    const some = await deleteSome(db, 'users', unlocked(db, unusedAccounts(db, times, rowsMax)));
    ended += some;
    return some;
  }, isStopping);
  return ended;
}

export function unusedAccounts(db: Database, { before, now }: Times, rowsMax: number) {
  const { selectFrom } = expressionBuilder<Tables, 'users'>();
  const links = selectFrom('accountTokens')
    .select('userId')
    .whereRef('accountTokens.userId', '=', 'users.id')
    .where('accountTokens.expiresAt', '>', now);
  const memberships = selectFrom('memberships')
    .select('userId')
    .whereRef('memberships.userId', '=', 'users.id');
  return db
    .selectFrom('users')
    .select('users.id')
    .where('emailVerified', 'is', null)
    .where('updatedAt', '<', before)
    .where(({ exists, not }) => not(exists(links)))
    .where(({ exists, not }) => not(exists(memberships)))
    .orderBy('users.id')
    .limit(rowsMax);
}
