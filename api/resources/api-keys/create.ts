/** Makes an API key for an organization: how many there may be, and what they reach. */
import { hashApiKey, newApiKey } from '#api/auth/api-key.ts';
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { badRequest, invalidFields, unauthorized } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { type ApiKey, insertApiKey, listApiKeys } from './store.ts';

const KEYS_PER_ORGANIZATION_MAX = 200;

export interface NewApiKey {
  /** One that the user manages. */
  readonly organizationId: string;
  readonly label: string;
  /** Unset: read and write. */
  readonly organizationAccess: ApiKey['organizationAccess'] | undefined;
  /** Unset: manage on every workspace of the organization. */
  readonly workspacePermissions: ApiKey['workspacePermissions'] | undefined;
}

/**
 * @returns the key's row, and the key itself, which nobody can see again
 * @throws ApiError bad_request when there are too many, invalid_fields
 */
export function createApiKey(
  { db, clock, random }: Pick<Context, 'db' | 'clock' | 'random'>,
  principal: SessionPrincipal,
  wanted: NewApiKey,
): Promise<{ readonly key: ApiKey; readonly apiKey: string }> {
  const { organizationId } = wanted;
  const apiKey = newApiKey(random);
  return db.transaction().execute(async (trx) => {
    const keys = await listApiKeys(trx, [organizationId]);
    if (keys.length >= KEYS_PER_ORGANIZATION_MAX) {
      throw badRequest(
        `An organization has at most ${KEYS_PER_ORGANIZATION_MAX} keys; delete one that nobody uses`,
      );
    }
    const workspaces = await trx
      .selectFrom('workspaces')
      .select('id')
      .where('organizationId', '=', organizationId)
      .orderBy('id')
      .execute();
    const ids = workspaces.map(({ id }) => id);
    const key: ApiKey = {
      id: newId(random),
      organizationId,
      label: wanted.label.trim(),
      createdAt: toTimestamp(clock()),
      createdBy: principal.userId,
      lastUsedAt: null,
      organizationAccess: wanted.organizationAccess ?? { accessControl: { read: true, write: true } },
      workspacePermissions: permissionsFrom(wanted.workspacePermissions, ids),
    };
    if (key.label === '') throw invalidFields({ label: 'must have more than spaces' });
    await insertApiKey(trx, key, hashApiKey(apiKey));
    return { key, apiKey };
  });
}

/** The organizations whose keys the user may see, make and revoke. @throws ApiError unauthorized when there are none */
export function managed({ roles }: SessionPrincipal): readonly string[] {
  const ids = [...roles].filter(([, role]) => role !== 'member').map(([id]) => id);
  if (ids.length === 0) throw unauthorized();
  return ids;
}

/** @param workspaceIds all of the organization */
function permissionsFrom(
  given: readonly { readonly workspaceId: string; readonly permission: Permission }[] | undefined,
  workspaceIds: readonly string[],
): readonly { readonly workspaceId: string; readonly permission: Permission }[] {
  if (given === undefined) return workspaceIds.map((workspaceId) => ({ workspaceId, permission: 'manage' }));
  const seen = new Set<string>();
  given.forEach(({ workspaceId }, i) => {
    const path = `workspacePermissions.${i}.workspaceId`;
    if (!workspaceIds.includes(workspaceId)) {
      throw invalidFields({ [path]: 'is no workspace of the organization' });
    }
    if (seen.has(workspaceId)) throw invalidFields({ [path]: 'is there twice' });
    seen.add(workspaceId);
  });
  return given;
}
