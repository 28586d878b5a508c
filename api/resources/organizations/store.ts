/** The members of organizations, and what an organization may reach. This file writes the table `memberships`. */
import type { Database, MembershipTable } from '#api/db/schema.ts';
import type { Reach } from '#api/events/targets.ts';

export async function insertMembership(db: Database, membership: Readonly<MembershipTable>): Promise<void> {
  await db.insertInto('memberships').values(membership).execute();
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
