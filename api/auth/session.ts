/**
 * Sessions. The cookie has a random token, and a row has its SHA-256 and the end of the session. A fast hash is
 * enough, because the token is 32 random bytes. This file writes only the table `sessions`.
 */
import { createHash } from 'node:crypto';
import { unlocked } from '#api/db/locks.ts';
import type { Database, SessionTable } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Seconds } from '#shared/clock.ts';
import type { SessionPrincipal } from './principal.ts';

const TOKEN_BYTES = 32;
/** Maximum length of a token. Refusing longer texts here keeps hashing cheap. */
const TOKEN_LENGTH_MAX = 128;
/** Maximum number of sessions of a user. Beyond it, the oldest ones end. */
const SESSIONS_PER_USER_MAX = 50;

export function newToken(random: Random): string {
  return Buffer.from(random(TOKEN_BYTES)).toString('base64url');
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Begins a session, and deletes expired sessions. @returns the token for the cookie */
export async function startSession(
  db: Database,
  userId: string,
  options: { readonly clock: Clock; readonly random: Random; readonly maxAgeSeconds: Seconds },
): Promise<string> {
  const token = newToken(options.random);
  const now = options.clock();
  const ended = db.selectFrom('sessions').select('hashedToken').where('expiresAt', '<=', toTimestamp(now));
  await db.deleteFrom('sessions').where('hashedToken', 'in', unlocked(db, ended)).execute();
  await db
    .insertInto('sessions')
    .values({
      hashedToken: hashToken(token),
      userId,
      createdAt: toTimestamp(now),
      expiresAt: toTimestamp(now + options.maxAgeSeconds * 1000),
    })
    .execute();
  const surplus = db
    .selectFrom('sessions')
    .select('hashedToken')
    .where('userId', '=', userId)
    .orderBy('createdAt', 'desc')
    .orderBy('hashedToken')
    .limit(SESSIONS_PER_USER_MAX)
    .offset(SESSIONS_PER_USER_MAX);
  await db.deleteFrom('sessions').where('hashedToken', 'in', surplus).execute();
  return token;
}

export async function endSession(db: Database, token: string): Promise<void> {
  if (token.length > TOKEN_LENGTH_MAX) return;
  await db.deleteFrom('sessions').where('hashedToken', '=', hashToken(token)).execute();
}

/** Ends all sessions of a user, after a change of the password or the address. */
export async function endSessionsOf(db: Database, userId: string): Promise<void> {
  await db.deleteFrom('sessions').where('userId', '=', userId).execute();
}

/** @returns null if the session has ended or never existed */
export async function findSession(
  db: Database,
  token: string,
  clock: Clock,
): Promise<Pick<SessionTable, 'userId' | 'expiresAt'> | null> {
  if (token.length > TOKEN_LENGTH_MAX) return null;
  const row = await db
    .selectFrom('sessions')
    .select(['userId', 'expiresAt'])
    .where('hashedToken', '=', hashToken(token))
    .where('expiresAt', '>', toTimestamp(clock()))
    .executeTakeFirst();
  return row ?? null;
}

/** Finds the user of a session and the user's permissions. @returns null if the session has ended or never existed */
export async function authenticateSession(
  db: Database,
  token: string,
  clock: Clock,
): Promise<SessionPrincipal | null> {
  const session = await findSession(db, token, clock);
  if (session === null) return null;
  const organizationIds = await organizationsRunBy(db, session.userId);
  const workspaces =
    organizationIds.length === 0
      ? []
      : await db
          .selectFrom('workspaces')
          .select('id')
          .where('organizationId', 'in', organizationIds)
          .where('deletingAt', 'is', null)
          .orderBy('id')
          .execute();
  return {
    kind: 'session',
    userId: session.userId,
    organizationIds,
    permissions: new Map(workspaces.map(({ id }) => [id, 'manage'])),
  };
}

/**
 * Owners and managers run an organization: all of its workspaces and API keys. The role `member` gives no rights.
 *
 * @returns ids in the order in which the user joined
 */
export async function organizationsRunBy(db: Database, userId: string): Promise<readonly string[]> {
  const memberships = await db
    .selectFrom('memberships')
    .select('organizationId')
    .where('userId', '=', userId)
    .where('role', 'in', ['owner', 'manager'])
    .orderBy('createdAt')
    .orderBy('organizationId')
    .execute();
  return memberships.map(({ organizationId }) => organizationId);
}
