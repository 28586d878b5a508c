/** People who log in, and the links that mails send them. This file writes the tables `users` and `accountTokens`. */
import { hashToken, newToken } from '#api/auth/session.ts';
import { lockRow, unlocked } from '#api/db/locks.ts';
import type { AccountTokenTable, Database, Decoded, Timestamp, UserTable } from '#api/db/schema.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

export type User = Decoded<UserTable>;
export type Purpose = AccountTokenTable['purpose'];

export interface AccountLink {
  readonly user: User;
  /** The address that the mail was sent to. */
  readonly email: string;
}

const HOUR: Millis = 60 * 60 * 1000;

/** Time for which a link is valid. */
const lifetimes: Readonly<Record<Purpose, Millis>> = {
  verifyEmail: 24 * HOUR,
  resetPassword: HOUR,
  changeEmail: 24 * HOUR,
};

const TOKEN_LENGTH_MAX = 128;

/** @param email as `normalizeEmail` returns it */
export async function findUserByEmail(db: Database, email: string): Promise<User | null> {
  return (await db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()) ?? null;
}

export async function findUser(db: Database, id: string): Promise<User | null> {
  return (await db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()) ?? null;
}

/** @throws the driver's unique violation if the address is taken */
export async function insertUser(
  db: Database,
  user: Pick<User, 'name' | 'email' | 'passwordHash'> & Partial<Pick<User, 'emailVerified'>>,
  now: Timestamp,
  random: Random,
): Promise<string> {
  const id = newId(random);
  await db
    .insertInto('users')
    .values({
      emailVerified: null,
      ...user,
      id,
      createdAt: now,
      updatedAt: now,
      lastLoginAt: null,
    })
    .execute();
  return id;
}

/** @throws the driver's unique violation if the address is taken */
export async function updateUser(
  db: Database,
  id: string,
  change: Partial<Pick<User, 'name' | 'email' | 'emailVerified' | 'passwordHash'>>,
  now: Timestamp,
): Promise<void> {
  await db
    .updateTable('users')
    .set({ ...change, updatedAt: now })
    .where('id', '=', id)
    .execute();
}

/** Deletes a user with all sessions, links and memberships. */
export async function deleteUser(db: Database, id: string): Promise<void> {
  await db.deleteFrom('users').where('id', '=', id).execute();
}

/** A login does not change the account, so `updatedAt` stays. */
export async function noteLogin(db: Database, id: string, now: Timestamp): Promise<void> {
  await db.updateTable('users').set({ lastLoginAt: now }).where('id', '=', id).execute();
}

/** Creates the token of a link, and deletes expired ones. @param email the address that gets the link */
export async function insertToken(
  db: Database,
  link: { readonly userId: string; readonly purpose: Purpose; readonly email: string },
  now: Millis,
  random: Random,
): Promise<string> {
  const text = newToken(random);
  const ended = db
    .selectFrom('accountTokens')
    .select('hashedToken')
    .where('expiresAt', '<=', toTimestamp(now));
  await db.deleteFrom('accountTokens').where('hashedToken', 'in', unlocked(db, ended)).execute();
  await db
    .insertInto('accountTokens')
    .values({
      ...link,
      hashedToken: hashToken(text),
      expiresAt: toTimestamp(now + lifetimes[link.purpose]),
    })
    .execute();
  return text;
}

/** @returns null if the link has ended, was used, or never existed */
export async function findToken(
  db: Database,
  purpose: Purpose,
  token: string,
  now: Millis,
): Promise<AccountLink | null> {
  if (token.length > TOKEN_LENGTH_MAX) return null;
  const row = await db
    .selectFrom('accountTokens')
    .innerJoin('users', 'users.id', 'accountTokens.userId')
    .selectAll('users')
    .select('accountTokens.email as tokenEmail')
    .where('accountTokens.hashedToken', '=', hashToken(token))
    .where('accountTokens.purpose', '=', purpose)
    .where('accountTokens.expiresAt', '>', toTimestamp(now))
    .executeTakeFirst();
  if (row === undefined) return null;
  const { tokenEmail, ...user } = row;
  return { user, email: tokenEmail };
}

/**
 * Finds the token in the transaction that uses the link. Of two requests with one link, the second sees what the first
 * did.
 */
export async function findTokenToUse(
  trx: Database,
  purpose: Purpose,
  token: string,
  now: Millis,
): Promise<AccountLink | null> {
  const found = await findToken(trx, purpose, token, now);
  if (found === null) return null;
  await lockRow(trx, 'users', found.user.id);
  return findToken(trx, purpose, token, now);
}

/** Finds and locks the user with this address, in the transaction that changes the account. */
export async function findUserToChange(trx: Database, email: string): Promise<User | null> {
  const found = await findUserByEmail(trx, email);
  if (found === null) return null;
  await lockRow(trx, 'users', found.id);
  return findUserByEmail(trx, email);
}

/**
 * Whether a fact that was proven about the account is still true. Call it in the transaction that relies on it:
 * checking a password takes time, and a new password or address in between must end the attempt.
 */
export async function isAsProven(
  trx: Database,
  proven: Pick<User, 'id' | 'email' | 'passwordHash'>,
): Promise<boolean> {
  const { id, email, passwordHash } = proven;
  await lockRow(trx, 'users', id);
  const now = await findUser(trx, id);
  return now !== null && now.email === email && now.passwordHash === passwordHash;
}

/** Ends every other link of the user. This one stays, so that a second click shows that it was used. */
export async function deleteOtherTokens(db: Database, userId: string, token: string): Promise<void> {
  await db
    .deleteFrom('accountTokens')
    .where('userId', '=', userId)
    .where('hashedToken', '!=', hashToken(token))
    .execute();
}

/** Ends the user's links of these purposes. */
export async function deleteTokens(
  db: Database,
  userId: string,
  purposes: readonly Purpose[],
): Promise<void> {
  await db
    .deleteFrom('accountTokens')
    .where('userId', '=', userId)
    .where('purpose', 'in', purposes)
    .execute();
}
