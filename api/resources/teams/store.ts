/** Teams, with their members and workspaces. */
import { countRows } from '#api/db/count.ts';
import type {
  Database,
  Decoded,
  TeamPermission,
  TeamRole,
  TeamTable,
  TeamWorkspaceTable,
  Timestamp,
} from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';

export type Team = Decoded<TeamTable>;

interface TeamDetails extends Team {
  /** Users of the team, sorted by name. */
  readonly members: readonly {
    readonly userId: string;
    readonly name: string;
    readonly email: string;
    readonly role: TeamRole;
  }[];
  /** Workspaces, sorted by name. */
  readonly workspaces: readonly {
    readonly workspaceId: string;
    readonly name: string;
    readonly permission: TeamPermission;
  }[];
}

/** Lists teams by name. @param userId lists only teams of this user; null for all teams of the organization */
export function listTeams(
  db: Database,
  organizationId: string,
  userId: string | null,
  page: ListPage,
): Promise<readonly Team[]> {
  let query = db.selectFrom('teams').selectAll('teams').where('teams.organizationId', '=', organizationId);
  if (userId !== null) {
    query = query.where('teams.id', 'in', (from) =>
      from.selectFrom('teamMembers').select('teamId').where('userId', '=', userId),
    );
  }
  return query.orderBy('teams.name').limit(page.limit).offset(page.skip).execute();
}

/** Finds teams by id, in any order. Ids without a row are left out. */
export async function findTeams(db: Database, ids: readonly string[]): Promise<readonly Team[]> {
  return ids.length === 0 ? [] : db.selectFrom('teams').selectAll().where('id', 'in', ids).execute();
}

export async function findTeam(db: Database, organizationId: string, id: string): Promise<Team | null> {
  const row = await db
    .selectFrom('teams')
    .selectAll()
    .where('id', '=', id)
    .where('organizationId', '=', organizationId)
    .executeTakeFirst();
  return row ?? null;
}

export async function withDetails(db: Database, team: Team): Promise<TeamDetails> {
  const members = await db
    .selectFrom('teamMembers')
    .innerJoin('users', 'users.id', 'teamMembers.userId')
    .select(['users.id as userId', 'users.name', 'users.email', 'teamMembers.role'])
    .where('teamMembers.teamId', '=', team.id)
    .orderBy('users.name')
    .orderBy('users.id')
    .execute();
  const workspaces = await db
    .selectFrom('teamWorkspaces')
    .innerJoin('workspaces', 'workspaces.id', 'teamWorkspaces.workspaceId')
    .select(['workspaces.id as workspaceId', 'workspaces.name', 'teamWorkspaces.permission'])
    .where('teamWorkspaces.teamId', '=', team.id)
    .orderBy('workspaces.name')
    .orderBy('workspaces.id')
    .execute();
  return { ...team, members, workspaces };
}

/** Returns the role of a user in a team; null if the user is not in the team. */
export async function teamRoleOf(db: Database, teamId: string, userId: string): Promise<TeamRole | null> {
  const row = await db
    .selectFrom('teamMembers')
    .select('role')
    .where('teamId', '=', teamId)
    .where('userId', '=', userId)
    .executeTakeFirst();
  return row?.role ?? null;
}

export function countTeams(db: Database, organizationId: string): Promise<number> {
  return countRows(db.selectFrom('teams').where('organizationId', '=', organizationId));
}

/** @throws the driver's unique violation if the name is taken */
export async function insertTeam(db: Database, team: Team): Promise<void> {
  await db.insertInto('teams').values(team).execute();
}

/** @throws the driver's unique violation if the name is taken */
export async function renameTeam(db: Database, id: string, name: string, now: Timestamp): Promise<void> {
  await db.updateTable('teams').set({ name, updatedAt: now }).where('id', '=', id).execute();
}

/** Deletes a team with its memberships and permissions. */
export async function deleteTeam(db: Database, id: string): Promise<void> {
  await db.deleteFrom('teams').where('id', '=', id).execute();
}

export async function setTeamMember(
  db: Database,
  place: { readonly teamId: string; readonly userId: string; readonly role: TeamRole },
  now: Timestamp,
): Promise<void> {
  await db
    .insertInto('teamMembers')
    .values({ ...place, createdAt: now })
    .onConflict((conflict) => conflict.columns(['teamId', 'userId']).doUpdateSet({ role: place.role }))
    .execute();
}

export async function removeTeamMember(db: Database, teamId: string, userId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('teamMembers')
    .where('teamId', '=', teamId)
    .where('userId', '=', userId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

export async function setTeamWorkspace(
  db: Database,
  given: { readonly teamId: string; readonly workspaceId: string; readonly permission: TeamPermission },
  now: Timestamp,
): Promise<void> {
  const { permission } = given;
  await db
    .insertInto('teamWorkspaces')
    .values({ ...given, createdAt: now, updatedAt: now })
    .onConflict((conflict) =>
      conflict.columns(['teamId', 'workspaceId']).doUpdateSet({ permission, updatedAt: now }),
    )
    .execute();
}

export type TeamWorkspace = Decoded<TeamWorkspaceTable>;

export async function findTeamWorkspace(
  db: Database,
  teamId: string,
  workspaceId: string,
): Promise<TeamWorkspace | null> {
  const row = await db
    .selectFrom('teamWorkspaces')
    .selectAll()
    .where('teamId', '=', teamId)
    .where('workspaceId', '=', workspaceId)
    .executeTakeFirst();
  return row ?? null;
}

/** Lists the permissions of an organization's teams. @param only null for all teams */
export function teamWorkspacesOf(
  db: Database,
  organizationId: string,
  only: { readonly teamId: string | null; readonly workspaceId: string | null },
) {
  let query = db
    .selectFrom('teamWorkspaces')
    .where('teamId', 'in', (from) =>
      from.selectFrom('teams').select('id').where('organizationId', '=', organizationId),
    );
  if (only.teamId !== null) query = query.where('teamId', '=', only.teamId);
  if (only.workspaceId !== null) query = query.where('workspaceId', '=', only.workspaceId);
  return query;
}

export async function removeTeamWorkspace(
  db: Database,
  teamId: string,
  workspaceId: string,
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('teamWorkspaces')
    .where('teamId', '=', teamId)
    .where('workspaceId', '=', workspaceId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}
