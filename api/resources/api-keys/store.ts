/** API keys as their owners see them. This file writes the tables `apiKeys` and `apiKeyPermissions`. */
import type { Permission } from '#api/auth/principal.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { isId } from '#api/values/ids.ts';

export interface ApiKey {
  readonly id: string;
  readonly organizationId: string;
  readonly label: string;
  readonly createdAt: Timestamp;
  readonly createdBy: string | null;
  readonly lastUsedAt: Timestamp | null;
  readonly organizationAccess: {
    readonly accessControl: { readonly read: boolean; readonly write: boolean };
  };
  /**
   * Permission on every workspace of the organization, also on later ones; null if the key has only the listed ones.
   */
  readonly allWorkspaces: Permission | null;
  /** Permissions in the order of the workspace ids. With `allWorkspaces`, all workspaces that exist now. */
  readonly workspacePermissions: readonly { readonly workspaceId: string; readonly permission: Permission }[];
}

/** Lists keys, newest first, ties by id. */
export async function listApiKeys(
  db: Database,
  organizationIds: readonly string[],
): Promise<readonly ApiKey[]> {
  if (organizationIds.length === 0) return [];
  const rows = await db
    .selectFrom('apiKeys')
    .selectAll()
    .where('organizationId', 'in', organizationIds)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .execute();
  if (rows.length === 0) return [];
  const permissions = Map.groupBy(
    await db
      .selectFrom('apiKeyPermissions')
      .selectAll()
      .where(
        'apiKeyId',
        'in',
        rows.map(({ id }) => id),
      )
      .orderBy('workspaceId')
      .execute(),
    ({ apiKeyId }) => apiKeyId,
  );
  const everywhere = rows.flatMap((row) => (row.allWorkspaces === null ? [] : [row.organizationId]));
  const workspaces = await workspacesOf(db, everywhere);
  return rows.map(({ hashedKey: _, organizationRead, organizationWrite, ...row }) => ({
    ...row,
    organizationAccess: {
      accessControl: { read: organizationRead === 1, write: organizationWrite === 1 },
    },
    workspacePermissions: permissionsOf(row.allWorkspaces, {
      all: workspaces.get(row.organizationId) ?? [],
      listed: permissions.get(row.id) ?? [],
    }),
  }));
}

function permissionsOf(
  allWorkspaces: Permission | null,
  workspaces: {
    readonly all: readonly string[];
    readonly listed: readonly { readonly workspaceId: string; readonly permission: Permission }[];
  },
): ApiKey['workspacePermissions'] {
  if (allWorkspaces === null) {
    return workspaces.listed.map(({ workspaceId, permission }) => ({ workspaceId, permission }));
  }
  return workspaces.all.map((workspaceId) => ({ workspaceId, permission: allWorkspaces }));
}

/** Returns the workspaces of organizations, by organization id. */
export async function workspacesOf(
  db: Database,
  organizationIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (organizationIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('workspaces')
    .select(['id', 'organizationId'])
    .where('organizationId', 'in', organizationIds)
    .where('deletingAt', 'is', null)
    .orderBy('id')
    .execute();
  const byOrganization = Map.groupBy(rows, ({ organizationId }) => organizationId);
  return new Map([...byOrganization].map(([id, found]) => [id, found.map((workspace) => workspace.id)]));
}

export async function findApiKey(
  db: Database,
  organizationIds: readonly string[],
  id: string,
): Promise<ApiKey | null> {
  if (!isId(id)) return null;
  return (await listApiKeys(db, organizationIds)).find((key) => key.id === id) ?? null;
}

export async function insertApiKey(db: Database, key: ApiKey, hashedKey: string): Promise<void> {
  const { organizationAccess, workspacePermissions, ...row } = key;
  const { read, write } = organizationAccess.accessControl;
  await db
    .insertInto('apiKeys')
    .values({ ...row, hashedKey, organizationRead: read ? 1 : 0, organizationWrite: write ? 1 : 0 })
    .execute();
  if (key.allWorkspaces !== null || workspacePermissions.length === 0) return;
  await db
    .insertInto('apiKeyPermissions')
    .values(workspacePermissions.map((permission) => ({ ...permission, apiKeyId: key.id })))
    .execute();
}

export async function deleteApiKey(db: Database, id: string): Promise<void> {
  await db.deleteFrom('apiKeys').where('id', '=', id).execute();
}
