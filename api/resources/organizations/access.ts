/** Checks which organizations a logged-in person runs, as owner or manager. */
import type { FastifyRequest } from 'fastify';
import { sessionOf } from '#api/auth/plugin.ts';
import type { SessionPrincipal } from '#api/auth/principal.ts';
import { organizationsRunBy } from '#api/auth/session.ts';
import { lockRows } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { notFound, unauthorized } from '#api/errors.ts';
import { isRecord } from '#api/values/schemas.ts';

/** @throws ApiError unauthorized if there are none */
export function managed({ organizationIds }: SessionPrincipal): readonly string[] {
  if (organizationIds.length === 0) throw unauthorized();
  return organizationIds;
}

/**
 * A hook for routes of an organization, before the body is read. Other people do not learn which organizations exist.
 *
 * @throws ApiError not_found unless the person runs the organization of the path
 */
export async function requireManager(request: FastifyRequest): Promise<void> {
  const id = isRecord(request.params) ? String(request.params.organizationId) : '';
  if (!sessionOf(request).organizationIds.includes(id)) throw notFound('Organization', id);
}

/**
 * Returns the organizations that the person still runs, in the transaction that changes something of them. A key outlives
 * the person who created it, so a person who was removed during the request must not create one. It locks the
 * organizations, so such changes run one after the other.
 */
export async function managedNow(
  trx: Database,
  { userId }: SessionPrincipal,
  organizationIds: readonly string[],
): Promise<readonly string[]> {
  await lockRows(trx, 'organizations', organizationIds);
  const now = await organizationsRunBy(trx, userId);
  return organizationIds.filter((id) => now.includes(id));
}
