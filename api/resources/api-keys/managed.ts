/** The organizations whose keys a person may see, create and revoke: those that the person owns or manages. */
import { type Role, runsOrganization, type SessionPrincipal } from '#api/auth/principal.ts';
import { lockRows } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { unauthorized } from '#api/errors.ts';

/** @throws ApiError unauthorized if there are none */
export function managed({ roles }: SessionPrincipal): readonly string[] {
  const ids = [...roles].filter(([, role]) => runsOrganization(role)).map(([id]) => id);
  if (ids.length === 0) throw unauthorized();
  return ids;
}

/**
 * The organizations that the person still manages, with the role, in the transaction that changes their keys. A key outlives the
 * person who created it, so a person who was removed during the request must not create one.
 */
export async function managedNow(
  trx: Database,
  { userId }: SessionPrincipal,
  organizationIds: readonly string[],
): Promise<ReadonlyMap<string, Role>> {
  await lockRows(trx, 'organizations', organizationIds);
  const rows = await trx
    .selectFrom('memberships')
    .select(['organizationId', 'role'])
    .where('userId', '=', userId)
    .where('organizationId', 'in', organizationIds)
    .execute();
  return new Map(
    rows.flatMap(({ organizationId, role }) => (runsOrganization(role) ? [[organizationId, role]] : [])),
  );
}
