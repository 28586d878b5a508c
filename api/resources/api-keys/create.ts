/** Creates API keys. Limits their number in an organization, and checks their permissions. */

import { hashApiKey, newApiKey } from '#api/auth/api-key.ts';
import type { Permission, Role, SessionPrincipal } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, invalidFields, unauthorized } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { managedNow } from './managed.ts';
import { type ApiKey, insertApiKey, listApiKeys, workspacesOf } from './store.ts';

const KEYS_PER_ORGANIZATION_MAX = 200;

/** The access of a key whose creator names none. */
export const readOnly: ApiKey['organizationAccess'] = { accessControl: { read: true, write: false } };

export interface NewApiKey {
  /** An organization that the user managed when the request began. */
  readonly organizationId: string;
  readonly label: string;
  /** Access to the organization. Default: read, which v2 `me` needs. */
  readonly organizationAccess: ApiKey['organizationAccess'] | undefined;
  readonly reach: WantedReach;
}

/**
 * The workspaces of a key. At most one of the two members is set. Without both, the key manages every workspace of the
 * organization.
 */
export interface WantedReach {
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
    const role = (await managedNow(trx, principal, [organizationId])).get(organizationId);
    if (role === undefined) throw unauthorized();
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
      organizationAccess: accessFrom(wanted.organizationAccess, readOnly, reach, role),
      ...reach,
    };
    await insertApiKey(trx, key, hashApiKey(apiKey));
    return { key, apiKey };
  });
}

export function labelIn(given: string): string {
  const label = given.trim();
  if (label === '') throw invalidFields({ label: 'must have more than spaces' });
  return label;
}

/**
 * Only an owner gives a key write on the organization, and only to a key that manages all of its workspaces. A key
 * that stops managing them loses it.
 *
 * @param wanted undefined if the request does not name it
 * @param before the access so far
 * @throws ApiError invalid_fields; unauthorized if a manager gives write
 */
export function accessFrom(
  wanted: ApiKey['organizationAccess'] | undefined,
  before: ApiKey['organizationAccess'],
  { allWorkspaces }: Pick<ApiKey, 'allWorkspaces'>,
  role: Role,
): ApiKey['organizationAccess'] {
  const managesAll = allWorkspaces === 'manage';
  if (wanted === undefined) {
    const { read, write } = before.accessControl;
    return { accessControl: { read, write: write && managesAll } };
  }
  if (!wanted.accessControl.write) return wanted;
  if (!managesAll) {
    const problem = 'is only for keys with "allWorkspaces": "manage"';
    throw invalidFields({ 'organizationAccess.accessControl.write': problem });
  }
  if (role !== 'owner' && !before.accessControl.write) throw unauthorized();
  return wanted;
}

export async function reachFrom(
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
