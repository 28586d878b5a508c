/**
 * API keys as their owners see them, who make and revoke them on the account page. The text of a key is shown once. This
 * file writes the tables `apiKeys` and `apiKeyPermissions`.
 */
import { hashApiKey, newApiKey } from '#api/auth/api-key.ts';
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { countRows } from '#api/db/count.ts';
import type { ApiKeyTable, Database } from '#api/db/schema.ts';
import { badRequest, invalidFields, unauthorized } from '#api/errors.ts';
import { managedNow } from '#api/resources/organizations/store.ts';
import { newId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';

const KEYS_PER_ORGANIZATION_MAX = 200;
const LABEL_LENGTH_MAX = 255;

interface WorkspacePermission {
  readonly workspaceId: string;
  readonly permission: Permission;
}

export interface ApiKey extends Readonly<Omit<ApiKeyTable, 'hashedKey'>> {
  /** In the order of the workspace ids. Empty with `allWorkspaces`. */
  readonly workspacePermissions: readonly WorkspacePermission[];
}

/** Lists keys, newest first, ties by id. */
export async function listApiKeys(
  db: Database,
  organizationIds: readonly string[],
): Promise<readonly ApiKey[]> {
  if (organizationIds.length === 0) return [];
  const rows = await db
    .selectFrom('apiKeys')
    .select(['id', 'organizationId', 'label', 'createdBy', 'createdAt', 'lastUsedAt', 'allWorkspaces'])
    .where('organizationId', 'in', organizationIds)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .execute();
  const permissions = await db
    .selectFrom('apiKeyPermissions')
    .innerJoin('apiKeys', 'apiKeys.id', 'apiKeyPermissions.apiKeyId')
    .select(['apiKeyId', 'workspaceId', 'permission'])
    .where('organizationId', 'in', organizationIds)
    .orderBy('workspaceId')
    .execute();
  const byKey = Map.groupBy(permissions, ({ apiKeyId }) => apiKeyId);
  return rows.map((row) => ({ ...row, workspacePermissions: byKey.get(row.id) ?? [] }));
}

export interface NewApiKey {
  /** An organization that the user managed when the request began. */
  readonly organizationId: string;
  readonly label: string;
  /** The only workspace of the key; undefined for all of the organization, also later ones. */
  readonly workspaceId: string | undefined;
  readonly permission: Permission;
}

/**
 * @returns the key, which is never shown again
 * @throws ApiError bad_request if there are too many, invalid_fields, unauthorized
 */
export function createApiKey(
  { db, clock, random }: Pick<Context, 'db' | 'clock' | 'random'>,
  principal: SessionPrincipal,
  { organizationId, label, workspaceId, permission }: NewApiKey,
): Promise<string> {
  const apiKey = newApiKey(random);
  return db.transaction().execute(async (trx) => {
    if ((await managedNow(trx, principal, [organizationId])).length === 0) throw unauthorized();
    const keys = trx.selectFrom('apiKeys').where('organizationId', '=', organizationId);
    if ((await countRows(keys)) >= KEYS_PER_ORGANIZATION_MAX) {
      throw badRequest(
        `An organization has at most ${KEYS_PER_ORGANIZATION_MAX} keys; delete one that nobody uses`,
      );
    }
    const made = {
      ...{ id: newId(random), organizationId, label: labelIn(label), createdBy: principal.userId },
      ...{ createdAt: toTimestamp(clock()), lastUsedAt: null },
    };
    if (workspaceId === undefined) {
      await insertApiKey(trx, { ...made, allWorkspaces: permission, workspacePermissions: [] }, apiKey);
    } else {
      await requireWorkspace(trx, organizationId, workspaceId);
      const workspacePermissions = [{ workspaceId, permission }];
      await insertApiKey(trx, { ...made, allWorkspaces: null, workspacePermissions }, apiKey);
    }
    return apiKey;
  });
}

function labelIn(given: string): string {
  const label = given.trim();
  if (label === '') throw invalidFields({ label: 'must have more than spaces' });
  if (label.length > LABEL_LENGTH_MAX) {
    throw invalidFields({ label: `must have at most ${LABEL_LENGTH_MAX} characters` });
  }
  return label;
}

async function requireWorkspace(trx: Database, organizationId: string, id: string): Promise<void> {
  const found = await trx
    .selectFrom('workspaces')
    .select('id')
    .where('id', '=', id)
    .where('organizationId', '=', organizationId)
    .where('deletingAt', 'is', null)
    .executeTakeFirst();
  if (found === undefined) throw badRequest(`${id} is no workspace of the organization`);
}

/** @param apiKey the text of the key, of which only a hash is stored */
export async function insertApiKey(
  trx: Database,
  { workspacePermissions, ...row }: ApiKey,
  apiKey: string,
): Promise<void> {
  await trx
    .insertInto('apiKeys')
    .values({ ...row, hashedKey: hashApiKey(apiKey) })
    .execute();
  if (workspacePermissions.length === 0) return;
  await trx
    .insertInto('apiKeyPermissions')
    .values(workspacePermissions.map((permission) => ({ ...permission, apiKeyId: row.id })))
    .execute();
}

/** @returns false if the caller manages no key with this id */
export function revokeApiKey(db: Database, principal: SessionPrincipal, id: string): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const managed = await managedNow(trx, principal, principal.organizationIds);
    if (managed.length === 0) return false;
    const { numDeletedRows } = await trx
      .deleteFrom('apiKeys')
      .where('id', '=', id)
      .where('organizationId', 'in', managed)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  });
}
