/** Checks what an API key may do with the people of the organization of the path, on v2. */
import type { FastifyRequest } from 'fastify';
import { principalOf } from '#api/auth/plugin.ts';
import { type ApiKeyPrincipal, rightOf } from '#api/auth/principal.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { unauthorized } from '#api/errors.ts';
import { refusing } from '#api/http/refuses.ts';
import { isRecord } from '#api/schemas.ts';

/** `config` of a route about an organization: it serves keys without access to a workspace. */
export const aboutOrganization = { needsNoWorkspace: true } as const;

/**
 * A hook that runs before the body is read. Keys of other organizations get the same reply as for unknown ids, so they
 * do not learn which organizations exist.
 *
 * @throws ApiError unauthorized
 */
export const requireOrganizationAccess = refusing(
  async (request: FastifyRequest): Promise<void> => void keyIn(request),
  'unauthorized',
);

/**
 * The people are those of all workspaces, so a key must manage all of them.
 *
 * @throws ApiError unauthorized if the key belongs to another organization, or lacks the right
 */
export function keyIn(request: FastifyRequest): ApiKeyPrincipal {
  const principal = principalOf(request);
  const organizationId = isRecord(request.params) ? request.params.organizationId : undefined;
  if (principal.kind !== 'apiKey' || principal.organizationId !== organizationId) throw unauthorized();
  const { read, write } = principal.organizationAccess;
  if (!principal.managesAll) throw unauthorized();
  if (!(rightOf(request.method) === 'read' ? read || write : write)) throw unauthorized();
  return principal;
}

/** Locks the organization. Every change of its people begins with this, see `lockPeople`. */
export async function lockOrganization(trx: Database, organizationId: string): Promise<void> {
  await lockRow(trx, 'organizations', organizationId);
}
