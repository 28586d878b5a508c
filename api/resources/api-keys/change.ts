/** Changes an API key: its label, what it reaches, and whether it may look at the organization. Its text stays. */
import type { Kysely } from 'kysely';
import { lockRows } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { labelIn, permissionsFrom, workspaceIdsOf } from './create.ts';
import { type ApiKey, findApiKey, updateApiKey } from './store.ts';

/** What is unset stays. Permissions replace all that the key had. */
export interface ApiKeyChange {
  readonly label?: string;
  readonly organizationAccess?: ApiKey['organizationAccess'];
  readonly workspacePermissions?: ApiKey['workspacePermissions'];
}

/**
 * @param organizationIds those whose keys the caller may change
 * @returns the key as it is afterwards; null when there is none
 * @throws ApiError invalid_fields
 */
export function changeApiKey(
  db: Kysely<Database>,
  organizationIds: readonly string[],
  id: string,
  { label, organizationAccess, workspacePermissions }: ApiKeyChange,
): Promise<ApiKey | null> {
  return db.transaction().execute(async (trx) => {
    await lockRows(trx, 'organizations', organizationIds);
    const key = await findApiKey(trx, organizationIds, id);
    if (key === null) return null;
    const changed: ApiKey = {
      ...key,
      label: label === undefined ? key.label : labelIn(label),
      organizationAccess: organizationAccess ?? key.organizationAccess,
      workspacePermissions:
        workspacePermissions === undefined
          ? key.workspacePermissions
          : permissionsFrom(workspacePermissions, await workspaceIdsOf(trx, key.organizationId)),
    };
    await updateApiKey(trx, changed);
    return changed;
  });
}
