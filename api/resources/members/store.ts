/**
 * The members of an organization. This file writes the table `memberships`, and deletes what depends on a membership.
 */
import { countRows } from '#api/db/count.ts';
import type { Database, Role, TeamRole, Timestamp, UserTable } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';

/** Maximum number of members in an organization. */
export const MEMBERS_MAX = 1_000;

export interface Member {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly role: Role;
  readonly isActive: boolean;
  readonly createdAt: Timestamp;
  /** Teams in the order of their names. */
  readonly teams: readonly { readonly id: string; readonly name: string; readonly role: TeamRole }[];
}

/** Lists members in the order in which they joined, ties by id. Makes two queries for any number of members. */
export async function listMembers(
  db: Database,
  organizationId: string,
  page: ListPage,
): Promise<readonly Member[]> {
  const rows = await selectMembers(db, organizationId)
    .orderBy('memberships.createdAt')
    .orderBy('users.id')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  return withTeams(db, organizationId, rows);
}

export async function findMember(
  db: Database,
  organizationId: string,
  userId: string,
): Promise<Member | null> {
  const rows = await selectMembers(db, organizationId).where('users.id', '=', userId).execute();
  const [member] = await withTeams(db, organizationId, rows);
  return member ?? null;
}

/** A member with the facts about the account, as v2 shows them. */
interface OrganizationUser {
  readonly id: string;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
  readonly lastLoginAt: Timestamp | null;
  readonly isActive: boolean;
  readonly name: string;
  readonly email: string;
  readonly role: Role;
  /** Names, in their order. */
  readonly teams: readonly string[];
}

/** Finds members by user id, in any order. Ids of other people are left out. */
export async function findUsersOf(
  db: Database,
  organizationId: string,
  ids: readonly string[],
): Promise<readonly OrganizationUser[]> {
  if (ids.length === 0) return [];
  const rows = await selectMembers(db, organizationId)
    .select(['users.createdAt as madeAt', 'users.updatedAt', 'users.lastLoginAt'])
    .where('users.id', 'in', ids)
    .execute();
  const members = new Map((await withTeams(db, organizationId, rows)).map((member) => [member.id, member]));
  return rows.map(({ id, madeAt, updatedAt, lastLoginAt, isActive, name, email, role }) => ({
    ...{ id, createdAt: madeAt, updatedAt, lastLoginAt, isActive: isActive === 1, name, email, role },
    teams: (members.get(id)?.teams ?? []).map((team) => team.name),
  }));
}

export function countMembers(db: Database, organizationId: string): Promise<number> {
  return countRows(db.selectFrom('memberships').where('organizationId', '=', organizationId));
}

/**
 * Whether another owner exists. Deactivated owners do not count, because they cannot log in to give the role to others.
 */
export async function hasOtherOwner(db: Database, organizationId: string, userId: string): Promise<boolean> {
  const other = await selectMembers(db, organizationId)
    .where('memberships.role', '=', 'owner')
    .where('users.isActive', '=', 1)
    .where('users.id', '!=', userId)
    .executeTakeFirst();
  return other !== undefined;
}

/** Changes the role, and revokes invites to roles that the person may no longer give. Call it inside a transaction. */
export async function changeRole(
  trx: Database,
  organizationId: string,
  userId: string,
  role: Role,
): Promise<void> {
  await trx
    .updateTable('memberships')
    .set({ role })
    .where('organizationId', '=', organizationId)
    .where('userId', '=', userId)
    .execute();
  if (role !== 'owner') await deleteInvitesBy(trx, organizationId, userId);
}

/**
 * Deletes a membership, with the person's places in teams and invites to others. Sessions read memberships at every
 * request, so they lose access from the next one on. Call it inside a transaction.
 */
export async function removeMember(trx: Database, organizationId: string, userId: string): Promise<void> {
  await trx
    .deleteFrom('teamMembers')
    .where('userId', '=', userId)
    .where('teamId', 'in', (from) =>
      from.selectFrom('teams').select('id').where('organizationId', '=', organizationId),
    )
    .execute();
  await deleteInvitesBy(trx, organizationId, userId);
  await trx
    .deleteFrom('memberships')
    .where('organizationId', '=', organizationId)
    .where('userId', '=', userId)
    .execute();
}

/** Returns the keys that a person created and may still know. They belong to the organization, and stay. */
export async function keysMadeBy(
  db: Database,
  organizationId: string,
  userId: string,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('apiKeys')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('createdBy', '=', userId)
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
}

export async function deleteInvitesBy(trx: Database, organizationId: string, userId: string): Promise<void> {
  await trx
    .deleteFrom('invites')
    .where('organizationId', '=', organizationId)
    .where('invitedBy', '=', userId)
    .execute();
}

type MemberRow = Pick<UserTable, 'id' | 'name' | 'email' | 'isActive' | 'createdAt'> & {
  readonly role: Role;
};

function selectMembers(db: Database, organizationId: string) {
  return db
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.userId')
    .select([
      'users.id',
      'users.name',
      'users.email',
      'users.isActive',
      'memberships.role',
      'memberships.createdAt',
    ])
    .where('memberships.organizationId', '=', organizationId);
}

async function withTeams(
  db: Database,
  organizationId: string,
  rows: readonly MemberRow[],
): Promise<readonly Member[]> {
  if (rows.length === 0) return [];
  const teams = await db
    .selectFrom('teamMembers')
    .innerJoin('teams', 'teams.id', 'teamMembers.teamId')
    .select(['teamMembers.userId', 'teamMembers.role', 'teams.id', 'teams.name'])
    .where('teams.organizationId', '=', organizationId)
    .where(
      'teamMembers.userId',
      'in',
      rows.map(({ id }) => id),
    )
    .orderBy('teams.name')
    .execute();
  const teamsOf = Map.groupBy(teams, ({ userId }) => userId);
  return rows.map(({ isActive, ...row }) => ({
    ...row,
    isActive: isActive === 1,
    teams: (teamsOf.get(row.id) ?? []).map(({ id, name, role }) => ({ id, name, role })),
  }));
}
