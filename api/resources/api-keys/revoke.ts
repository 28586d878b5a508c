/** Revokes an API key. */
import type { SessionPrincipal } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { managed, managedNow } from '#api/resources/organizations/access.ts';
import { type ApiKey, deleteApiKey, findApiKey } from './store.ts';

/**
 * @returns the revoked key; null if the caller manages no key with this id
 * @throws ApiError unauthorized for people who manage no organization
 */
export function revokeApiKey(db: Database, principal: SessionPrincipal, id: string): Promise<ApiKey | null> {
  const organizationIds = managed(principal);
  return db.transaction().execute(async (trx) => {
    const key = await findApiKey(trx, await managedNow(trx, principal, organizationIds), id);
    if (key !== null) await deleteApiKey(trx, id);
    return key;
  });
}
