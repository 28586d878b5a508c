/** The members of organizations, and what an organization may reach. This file writes the table `memberships`. */
import type { SessionPrincipal } from '#api/auth/principal.ts';
import { organizationsRunBy } from '#api/auth/session.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, MembershipTable, OrganizationTable, Role, Timestamp } from '#api/db/schema.ts';
import type { Reach } from '#api/events/targets.ts';

export async function insertMembership(db: Database, membership: Readonly<MembershipTable>): Promise<void> {
  await db.insertInto('memberships').values(membership).execute();
}

/** @param id null for the organization of the first start, which is the operator's */
export async function findOrganization(
  db: Database,
  id: string | null,
): Promise<Pick<OrganizationTable, 'id' | 'name'> | null> {
  const query = db.selectFrom('organizations').select(['id', 'name']).where('deletingAt', 'is', null);
  const found = id === null ? query.where('isOperators', '=', 1) : query.where('id', '=', id);
  return (await found.executeTakeFirst()) ?? null;
}

export interface Member {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  /** Whether the person has used a link, and so can log in. */
  readonly isVerified: boolean;
  readonly lastLoginAt: Timestamp | null;
}

/** Lists the people of an organization in the order in which they joined, ties by id. */
export async function listMembers(db: Database, organizationId: string): Promise<readonly Member[]> {
  const rows = await db
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.userId')
    .select(['users.id', 'users.email', 'users.name', 'memberships.role', 'emailVerified', 'lastLoginAt'])
    .where('memberships.organizationId', '=', organizationId)
    .orderBy('memberships.createdAt')
    .orderBy('users.id')
    .execute();
  return rows.map(({ emailVerified, ...row }) => ({ ...row, isVerified: emailVerified !== null }));
}

export async function roleIn(db: Database, organizationId: string, userId: string): Promise<Role | null> {
  const row = await db
    .selectFrom('memberships')
    .select('role')
    .where('organizationId', '=', organizationId)
    .where('userId', '=', userId)
    .executeTakeFirst();
  return row?.role ?? null;
}

/** Whether somebody else owns the organization and can log in. */
export async function hasOtherOwner(db: Database, organizationId: string, userId: string): Promise<boolean> {
  const other = await db
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.userId')
    .select('users.id')
    .where('memberships.organizationId', '=', organizationId)
    .where('memberships.role', '=', 'owner')
    .where('users.emailVerified', 'is not', null)
    .where('users.id', '!=', userId)
    .executeTakeFirst();
  return other !== undefined;
}

export async function changeRole(
  db: Database,
  { organizationId, userId, role }: Pick<MembershipTable, 'organizationId' | 'userId' | 'role'>,
): Promise<void> {
  await db
    .updateTable('memberships')
    .set({ role })
    .where('organizationId', '=', organizationId)
    .where('userId', '=', userId)
    .execute();
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

export interface OwnOrganization {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  /** Whether it goes with the person: who owns it, nobody else belongs to it, and it is not the operator's. */
  readonly isOwn: boolean;
}

/** Lists the organizations of a person, by name. */
export async function organizationsOf(db: Database, userId: string): Promise<readonly OwnOrganization[]> {
  const rows = await db
    .selectFrom('memberships')
    .innerJoin('organizations', 'organizations.id', 'memberships.organizationId')
    .select(['organizations.id', 'organizations.name', 'memberships.role', 'organizations.isOperators'])
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('memberships as others')
          .select('others.userId')
          .whereRef('others.organizationId', '=', 'memberships.organizationId')
          .where('others.userId', '!=', userId),
      ).as('hasOthers'),
    )
    .where('memberships.userId', '=', userId)
    .orderBy('organizations.name')
    .orderBy('organizations.id')
    .execute();
  return rows.map(({ hasOthers, isOperators, ...row }) => ({
    ...row,
    isOwn: row.role === 'owner' && !hasOthers && isOperators === 0,
  }));
}

/** Deletes marked organizations that have no workspace any more. */
export async function deleteEmptied(db: Database): Promise<void> {
  const inUse = db.selectFrom('workspaces').select('organizationId');
  await db
    .deleteFrom('organizations')
    .where('deletingAt', 'is not', null)
    .where('id', 'not in', inUse)
    .execute();
}

/**
 * Returns the organizations that the person still runs, in the transaction that changes something of them. A key outlives
 * the person who created it, so a person who was removed during the request must not create one. It locks the
 * organizations, so such changes run one after the other.
 */
export async function managedNow(
  trx: Database,
  { userId }: SessionPrincipal,
  organizationIds: readonly string[],
): Promise<readonly string[]> {
  await lockRow(trx, 'organizations', ...organizationIds);
  const now = await organizationsRunBy(trx, userId);
  return organizationIds.filter((id) => now.includes(id));
}
