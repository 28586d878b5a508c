/** Creates and revokes API keys. Limits their number in an organization, and checks their permissions. */

import { hashApiKey, newApiKey } from '#api/auth/api-key.ts';
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, invalidFields, unauthorized } from '#api/errors.ts';
import { managed, managedNow } from '#api/resources/organizations/access.ts';
import { newId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { type ApiKey, deleteApiKey, findApiKey, insertApiKey, listApiKeys, workspacesOf } from './store.ts';

const KEYS_PER_ORGANIZATION_MAX = 200;
const LABEL_LENGTH_MAX = 255;

/** The access of a key whose creator names none. */
export const readOnly: ApiKey['organizationAccess'] = { accessControl: { read: true, write: false } };

export interface NewApiKey {
  /** An organization that the user managed when the request began. */
  readonly organizationId: string;
  readonly label: string;
  /** Default: read, which v2 `me` needs. */
  readonly organizationAccess: ApiKey['organizationAccess'] | undefined;
  readonly reach: WantedReach;
}

/**
 * The workspaces of a key. At most one of the two members is set. Without both, the key manages every workspace of the
 * organization.
 */
interface WantedReach {
  readonly allWorkspaces?: Permission | undefined;
  readonly workspacePermissions?: ApiKey['workspacePermissions'] | undefined;
}

/**
 * @returns the row of the key, and the key itself, which is never shown again
 * @throws ApiError bad_request if there are too many, invalid_fields, unauthorized
 */
export function createApiKey(
  { db, clock, random }: Pick<Context, 'db' | 'clock' | 'random'>,
  principal: SessionPrincipal,
  wanted: NewApiKey,
): Promise<{ readonly key: ApiKey; readonly apiKey: string }> {
  const { organizationId } = wanted;
  const apiKey = newApiKey(random);
  return db.transaction().execute(async (trx) => {
    if ((await managedNow(trx, principal, [organizationId])).length === 0) throw unauthorized();
    const keys = await listApiKeys(trx, [organizationId]);
    if (keys.length >= KEYS_PER_ORGANIZATION_MAX) {
      throw badRequest(
        `An organization has at most ${KEYS_PER_ORGANIZATION_MAX} keys; delete one that nobody uses`,
      );
    }
    const reach = await reachFrom(trx, organizationId, wanted.reach);
    const key: ApiKey = {
      id: newId(random),
      organizationId,
      label: labelIn(wanted.label),
      createdAt: toTimestamp(clock()),
      createdBy: principal.userId,
      lastUsedAt: null,
      organizationAccess: wanted.organizationAccess ?? readOnly,
      ...reach,
    };
    await insertApiKey(trx, key, hashApiKey(apiKey));
    return { key, apiKey };
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

async function reachFrom(
  trx: Database,
  organizationId: string,
  { allWorkspaces, workspacePermissions: listed }: WantedReach,
): Promise<Pick<ApiKey, 'allWorkspaces' | 'workspacePermissions'>> {
  const workspaceIds = (await workspacesOf(trx, [organizationId])).get(organizationId) ?? [];
  if (listed === undefined) {
    const permission = allWorkspaces ?? 'manage';
    return {
      allWorkspaces: permission,
      workspacePermissions: workspaceIds.map((workspaceId) => ({ workspaceId, permission })),
    };
  }
  if (allWorkspaces !== undefined) {
    throw invalidFields({ allWorkspaces: 'must be left out where workspacePermissions are given' });
  }
  const seen = new Set<string>();
  listed.forEach(({ workspaceId }, i) => {
    const path = `workspacePermissions.${i}.workspaceId`;
    if (!workspaceIds.includes(workspaceId)) {
      throw invalidFields({ [path]: 'is no workspace of the organization' });
    }
    if (seen.has(workspaceId)) throw invalidFields({ [path]: 'is there twice' });
    seen.add(workspaceId);
  });
  return { allWorkspaces: null, workspacePermissions: listed };
}

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
