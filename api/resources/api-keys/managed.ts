/** Whose keys a person may see, make and revoke: those of the organizations that the person runs. */
import type { Kysely } from 'kysely';
import { runsOrganization, type SessionPrincipal } from '#api/auth/principal.ts';
import { lockRows } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { unauthorized } from '#api/errors.ts';

/** @throws ApiError unauthorized when there are none */
export function managed({ roles }: SessionPrincipal): readonly string[] {
  const ids = [...roles].filter(([, role]) => runsOrganization(role)).map(([id]) => id);
  if (ids.length === 0) throw unauthorized();
  return ids;
}

/**
 * Those of the organizations that the person still runs, asked inside the transaction of a change to their keys: a key
 * outlives whoever made it, so nobody makes one who was removed since the request came.
 */
export async function managedNow(
  trx: Kysely<Database>,
  { userId }: SessionPrincipal,
  organizationIds: readonly string[],
): Promise<readonly string[]> {
  await lockRows(trx, 'organizations', organizationIds);
  const rows = await trx
    .selectFrom('memberships')
    .select(['organizationId', 'role'])
    .where('userId', '=', userId)
    .where('organizationId', 'in', organizationIds)
    .execute();
  return rows.filter(({ role }) => runsOrganization(role)).map(({ organizationId }) => organizationId);
}
