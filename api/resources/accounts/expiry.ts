/**
 * Deletes accounts whose address nobody ever verified, and their organization if they own it alone and it is empty.
 * An account stays if it was used in any way: if it has logged in, has a session, a key or a valid link, or shares an
 * organization with others or with content.
 */
import { hasManyWriters, lockRow, lockRows } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';

const STEP = 200;

interface EndedAccounts {
  readonly accounts: number;
  readonly organizations: number;
}

/** @param before accounts are deleted if they were last changed before this time, at sign-up or by a new password */
export async function endUnverifiedAccounts(
  db: Database,
  { before, now }: { readonly before: Timestamp; readonly now: Timestamp },
  isStopping: () => boolean = () => false,
): Promise<EndedAccounts> {
  let [accounts, organizations] = [0, 0];
  let after = '';
  for (;;) {
    const candidates = await unverifiedUsers(db, before, after).execute();
    for (const { id } of candidates) {
      if (isStopping()) return { accounts, organizations };
      const ended = await db.transaction().execute((trx) => endAccount(trx, id, before, now));
      if (ended === null) continue;
      accounts += 1;
      organizations += ended;
    }
    if (candidates.length < STEP) return { accounts, organizations };
    after = candidates.at(-1)?.id ?? '';
  }
}

export function unverifiedUsers(db: Database, before: Timestamp, after: string, limit = STEP) {
  return db
    .selectFrom('users')
    .select('id')
    .where('emailVerified', 'is', null)
    .where('id', '>', after)
    .where('updatedAt', '<', before)
    .orderBy('id')
    .limit(limit);
}

/** Call it inside the transaction. @returns the number of deleted organizations; null if the account stays */
async function endAccount(
  trx: Database,
  id: string,
  before: Timestamp,
  now: Timestamp,
): Promise<number | null> {
  await lockAccount(trx, id);
  const user = await trx
    .selectFrom('users')
    .select('id')
    .where('id', '=', id)
    .where('emailVerified', 'is', null)
    .where('updatedAt', '<', before)
    .where('lastLoginAt', 'is', null)
    .where((where) =>
      where.not(
        where.or([
          where.exists(
            where.selectFrom('sessions').select('userId').whereRef('sessions.userId', '=', 'users.id'),
          ),
          where.exists(
            where
              .selectFrom('accountTokens')
              .select('userId')
              .whereRef('accountTokens.userId', '=', 'users.id')
              .where('accountTokens.expiresAt', '>', now),
          ),
          where.exists(
            where.selectFrom('apiKeys').select('id').whereRef('apiKeys.createdBy', '=', 'users.id'),
          ),
          where.exists(
            where.selectFrom('responseNotes').select('id').whereRef('responseNotes.userId', '=', 'users.id'),
          ),
        ]),
      ),
    )
    .executeTakeFirst();
  if (user === undefined) return null;
  const memberships = await trx
    .selectFrom('memberships')
    .select(['organizationId', 'role'])
    .where('userId', '=', id)
    .execute();
  for (const { organizationId, role } of memberships) {
    if (role !== 'owner' || !(await isAloneAndEmpty(trx, organizationId))) return null;
  }
  const organizationIds = memberships.map(({ organizationId }) => organizationId);
  if (organizationIds.length > 0) {
    await trx.deleteFrom('organizations').where('id', 'in', organizationIds).execute();
  }
  await trx.deleteFrom('users').where('id', '=', id).execute();
  return organizationIds.length;
}

/** Locks the organizations, so that nobody joins them or adds anything to their workspaces meanwhile. */
async function lockAccount(trx: Database, id: string): Promise<void> {
  if (!hasManyWriters(trx)) return;
  const organizations = trx.selectFrom('memberships').select('organizationId').where('userId', '=', id);
  const owned = await organizations.execute();
  await lockRows(
    trx,
    'organizations',
    owned.map(({ organizationId }) => organizationId),
    'delete',
  );
  await lockRow(trx, 'users', id, 'delete');
  const workspaces = await trx
    .selectFrom('workspaces')
    .select('id')
    .where('organizationId', 'in', organizations)
    .execute();
  await lockRows(
    trx,
    'workspaces',
    workspaces.map((workspace) => workspace.id),
    'delete',
  );
}

/** Content that users added to a workspace. The default attribute keys do not count. */
const contents = [
  'surveys',
  'contacts',
  'webhooks',
  'files',
  'actionClasses',
  'segments',
  'languages',
  'tags',
  'events',
  'apiKeyPermissions',
] as const;

async function isAloneAndEmpty(trx: Database, organizationId: string): Promise<boolean> {
  const members = await trx
    .selectFrom('memberships')
    .select('userId')
    .where('organizationId', '=', organizationId)
    .limit(2)
    .execute();
  const key = await trx
    .selectFrom('apiKeys')
    .select('id')
    .where('organizationId', '=', organizationId)
    .limit(1)
    .executeTakeFirst();
  if (members.length > 1 || key !== undefined) return false;
  const workspaces = await trx
    .selectFrom('workspaces')
    .select('id')
    .where('organizationId', '=', organizationId)
    .execute();
  for (const { id } of workspaces) {
    for (const table of contents) {
      const row = await trx
        .selectFrom(table)
        .select('workspaceId')
        .where('workspaceId', '=', id)
        .limit(1)
        .executeTakeFirst();
      if (row !== undefined) return false;
    }
    const ownKey = await trx
      .selectFrom('contactAttributeKeys')
      .select('id')
      .where('workspaceId', '=', id)
      .where('type', '!=', 'default')
      .limit(1)
      .executeTakeFirst();
    if (ownKey !== undefined) return false;
  }
  return true;
}
