/** Invites to an organization. */
import { hashToken, newToken } from '#api/auth/session.ts';
import { countRows } from '#api/db/count.ts';
import type { Database, Decoded, InviteTable, Timestamp } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { newId, type Random } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

const DAY: Millis = 24 * 60 * 60 * 1000;
const INVITE_LIFETIME: Millis = 7 * DAY;
/** How long an expired invite is still listed, so that it can be sent again. */
const ENDED_KEPT: Millis = 30 * DAY;
const TOKEN_LENGTH_MAX = 128;

export type Invite = Omit<Decoded<InviteTable, { teamIds: readonly string[] }>, 'hashedToken' | 'revokedAt'>;

/** An invite with a valid link, and the names that its page shows. */
export interface OpenInvite extends Invite {
  readonly organizationName: string;
  readonly inviterName: string;
}

/** Lists invites, newest first, ties by id. Includes those that expired recently, but not revoked ones. */
export async function listInvites(
  db: Database,
  organizationId: string,
  page: ListPage,
): Promise<readonly Invite[]> {
  const rows = await db
    .selectFrom('invites')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('revokedAt', 'is', null)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  return rows.map(toInvite);
}

export async function findInvite(db: Database, organizationId: string, id: string): Promise<Invite | null> {
  const row = await db
    .selectFrom('invites')
    .selectAll()
    .where('id', '=', id)
    .where('organizationId', '=', organizationId)
    .where('revokedAt', 'is', null)
    .executeTakeFirst();
  return row === undefined ? null : toInvite(row);
}

export async function findInviteFor(
  db: Database,
  organizationId: string,
  email: string,
  now: Millis,
): Promise<Invite | null> {
  const row = await db
    .selectFrom('invites')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('email', '=', email)
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', toTimestamp(now))
    .executeTakeFirst();
  return row === undefined ? null : toInvite(row);
}

/** Finds the invite of a link. @returns null if it has expired, was used or revoked, or never existed */
export async function findOpenInvite(db: Database, token: string, now: Millis): Promise<OpenInvite | null> {
  if (token.length > TOKEN_LENGTH_MAX) return null;
  const row = await db
    .selectFrom('invites')
    .innerJoin('organizations', 'organizations.id', 'invites.organizationId')
    .innerJoin('users', 'users.id', 'invites.invitedBy')
    .selectAll('invites')
    .select(['organizations.name as organizationName', 'users.name as inviterName'])
    .where('invites.hashedToken', '=', hashToken(token))
    .where('invites.revokedAt', 'is', null)
    .where('invites.expiresAt', '>', toTimestamp(now))
    .executeTakeFirst();
  if (row === undefined) return null;
  const { organizationName, inviterName, ...invite } = row;
  return { ...toInvite(invite), organizationName, inviterName };
}

/**
 * Counts invites, including those that were revoked within a day, because each may have sent a mail to another address.
 */
export function countInvites(db: Database, organizationId: string): Promise<number> {
  return countRows(db.selectFrom('invites').where('organizationId', '=', organizationId));
}

/** Deletes invites that are not needed any more. */
export async function forgetOldInvites(db: Database, organizationId: string, now: Millis): Promise<void> {
  await db
    .deleteFrom('invites')
    .where('organizationId', '=', organizationId)
    .where((where) =>
      where.or([
        where('revokedAt', '<=', toTimestamp(now - DAY)),
        where('expiresAt', '<=', toTimestamp(now - ENDED_KEPT)),
      ]),
    )
    .execute();
}

/**
 * Replaces an earlier invite for the address, whose link becomes invalid. @returns the invite and the token of its link
 */
export async function insertInvite(
  db: Database,
  invite: Pick<Invite, 'organizationId' | 'email' | 'role' | 'teamIds' | 'invitedBy'>,
  now: Millis,
  random: Random,
): Promise<{ readonly invite: Invite; readonly token: string }> {
  const { organizationId, email, teamIds } = invite;
  const token = newToken(random);
  await db
    .deleteFrom('invites')
    .where('organizationId', '=', organizationId)
    .where('email', '=', email)
    .execute();
  const made: Invite = {
    ...invite,
    id: newId(random),
    createdAt: toTimestamp(now),
    expiresAt: toTimestamp(now + INVITE_LIFETIME),
  };
  await db
    .insertInto('invites')
    .values({ ...made, teamIds: JSON.stringify(teamIds), hashedToken: hashToken(token), revokedAt: null })
    .execute();
  return { invite: made, token };
}

/** Gives the invite a new link and a new expiry. The old link becomes invalid. */
export async function renewInvite(
  db: Database,
  invite: Invite,
  now: Millis,
  random: Random,
): Promise<{ readonly invite: Invite; readonly token: string }> {
  const token = newToken(random);
  const expiresAt = toTimestamp(now + INVITE_LIFETIME);
  await db
    .updateTable('invites')
    .set({ hashedToken: hashToken(token), expiresAt })
    .where('id', '=', invite.id)
    .execute();
  return { invite: { ...invite, expiresAt }, token };
}

export async function revokeInvite(db: Database, id: string, now: Timestamp): Promise<void> {
  await db.updateTable('invites').set({ revokedAt: now }).where('id', '=', id).execute();
}

/** Marks an invite as used. @returns false if it was used or revoked meanwhile */
export async function takeInvite(db: Database, id: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('invites')
    .where('id', '=', id)
    .where('revokedAt', 'is', null)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

function toInvite({ hashedToken: _, revokedAt: __, teamIds, ...row }: InviteTable): Invite {
  return { ...row, teamIds: JSON.parse(teamIds) };
}
