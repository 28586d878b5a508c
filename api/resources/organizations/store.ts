/** The members of organizations, and what an organization may reach. This file writes the table `memberships`. */
import type { Database, MembershipTable } from '#api/db/schema.ts';
import type { Reach } from '#api/events/targets.ts';

export async function insertMembership(db: Database, membership: Readonly<MembershipTable>): Promise<void> {
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
