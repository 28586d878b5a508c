/** Which workspace a v2 request is about. A workspace out of reach is 403 here; a row out of reach is 401 as on v1. */
import type { FastifyRequest } from 'fastify';
import type { Kysely } from 'kysely';
import { principalOf } from '#api/auth/plugin.ts';
import { may, rightOf } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { forbidden, NO_ACCESS, notFound } from '#api/errors.ts';
import { scopeIn, scopeMissing } from './scope.ts';
import { findWorkspace, type Workspace } from './store.ts';

/**
 * The workspace that a body names.
 *
 * @throws ApiError bad_request when it names none, not_found, forbidden without the right that the method needs
 */
export async function v2BodyWorkspace(db: Kysely<Database>, request: FastifyRequest): Promise<Workspace> {
  const scope = scopeIn(request.body);
  if (scope === null) throw scopeMissing();
  return v2Workspace(db, request, scope);
}

/** @param scope a workspace id or a legacy environment id @throws ApiError not_found, forbidden */
export async function v2Workspace(
  db: Kysely<Database>,
  request: FastifyRequest,
  scope: string,
): Promise<Workspace> {
  const workspace = await findWorkspace(db, scope);
  if (workspace === null) throw notFound('Workspace', scope);
  if (!may(principalOf(request), workspace.id, rightOf(request.method))) throw forbidden(NO_ACCESS);
  return workspace;
}
