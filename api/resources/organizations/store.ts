/** Organizations and their members. This file writes the tables `organizations` and `memberships`. */
import { lockRow } from '#api/db/locks.ts';
import type { Database, Decoded, OrganizationTable, Role, Timestamp } from '#api/db/schema.ts';
import type { Reach } from '#api/events/targets.ts';

type Organization = Omit<Decoded<OrganizationTable>, 'isOperators'>;

/** Lists the organizations of a user in the order in which the user joined. */
export function listOrganizations(
  db: Database,
  userId: string,
): Promise<readonly (Organization & { readonly role: Role })[]> {
  return db
    .selectFrom('memberships')
    .innerJoin('organizations', 'organizations.id', 'memberships.organizationId')
    .select([
      'organizations.id',
      'organizations.name',
      'organizations.createdAt',
      'organizations.updatedAt',
      'memberships.role',
    ])
    .where('memberships.userId', '=', userId)
    .orderBy('memberships.createdAt')
    .orderBy('organizations.id')
    .execute();
}

export async function findOrganization(db: Database, id: string): Promise<Organization | null> {
  const row = await db
    .selectFrom('organizations')
    .select(['id', 'name', 'createdAt', 'updatedAt'])
    .where('id', '=', id)
    .executeTakeFirst();
  return row ?? null;
}

export async function renameOrganization(
  db: Database,
  id: string,
  name: string,
  now: Timestamp,
): Promise<void> {
  await db.updateTable('organizations').set({ name, updatedAt: now }).where('id', '=', id).execute();
}

/**
 * Locks an organization. Every change of its people begins with this, so that each one counts what the one before it
 * left. Call it in the transaction of the change.
 *
 * @returns the role that the user has now; null if there is none
 */
export async function lockPeople(
  trx: Database,
  organizationId: string,
  userId: string,
): Promise<Role | null> {
  await lockRow(trx, 'organizations', organizationId);
  return roleOf(trx, organizationId, userId);
}

export async function roleOf(db: Database, organizationId: string, userId: string): Promise<Role | null> {
  const row = await db
    .selectFrom('memberships')
    .select('role')
    .where('organizationId', '=', organizationId)
    .where('userId', '=', userId)
    .executeTakeFirst();
  return row?.role ?? null;
}

export async function insertMembership(
  db: Database,
  membership: {
    readonly organizationId: string;
    readonly userId: string;
    readonly role: Role;
    readonly createdAt: Timestamp;
  },
): Promise<void> {
  await db.insertInto('memberships').values(membership).execute();
}

/** Whether any organization has a member. False on a server that is not set up. */
export async function hasMembers(db: Database): Promise<boolean> {
  const row = await db.selectFrom('memberships').select('userId').limit(1).executeTakeFirst();
  return row !== undefined;
}

/** Returns the targets that webhooks of the workspace's organization may have. */
export async function reachOf(db: Database, workspaceId: string): Promise<Reach> {
  const row = await db
    .selectFrom('workspaces')
    .innerJoin('organizations', 'organizations.id', 'workspaces.organizationId')
    .select('organizations.isOperators')
    .where('workspaces.id', '=', workspaceId)
    .executeTakeFirst();
  return row?.isOperators === 1 ? 'operators' : 'public';
}
