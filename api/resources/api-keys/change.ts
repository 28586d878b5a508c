/**
 * Changes the label, the workspaces and the access of an API key, or revokes the key. The text of a key cannot
 * change.
 */
import type { SessionPrincipal } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { managed, managedNow } from '#api/resources/organizations/access.ts';
import { labelIn, reachFrom, type WantedReach } from './create.ts';
import { type ApiKey, deleteApiKey, findApiKey, updateApiKey } from './store.ts';

/** Unset members are not changed. Either member of `WantedReach` replaces all permissions of the key. */
interface ApiKeyChange extends WantedReach {
  readonly label?: string;
  readonly organizationAccess?: ApiKey['organizationAccess'];
}

/**
 * @returns the key after the change; null if the caller manages no key with this id
 * @throws ApiError invalid_fields; unauthorized for people who manage no organization
 */
export function changeApiKey(
  db: Database,
  principal: SessionPrincipal,
  id: string,
  { label, organizationAccess, ...reach }: ApiKeyChange,
): Promise<ApiKey | null> {
  const organizationIds = managed(principal);
  return db.transaction().execute(async (trx) => {
    const key = await findApiKey(trx, await managedNow(trx, principal, organizationIds), id);
    if (key === null) return null;
    const reached = isStated(reach) ? await reachFrom(trx, key.organizationId, reach) : key;
    const { allWorkspaces, workspacePermissions } = reached;
    const changed: ApiKey = {
      ...key,
      label: label === undefined ? key.label : labelIn(label),
      organizationAccess: organizationAccess ?? key.organizationAccess,
      allWorkspaces,
      workspacePermissions,
    };
    await updateApiKey(trx, changed);
    return changed;
  });
}

/** @returns the revoked key; null if the caller manages no key with this id @throws ApiError as `changeApiKey` */
export function revokeApiKey(db: Database, principal: SessionPrincipal, id: string): Promise<ApiKey | null> {
  const organizationIds = managed(principal);
  return db.transaction().execute(async (trx) => {
    const key = await findApiKey(trx, await managedNow(trx, principal, organizationIds), id);
    if (key !== null) await deleteApiKey(trx, id);
    return key;
  });
}

function isStated({ allWorkspaces, workspacePermissions }: WantedReach): boolean {
  return allWorkspaces !== undefined || workspacePermissions !== undefined;
}
