/** v3 does not tell what exists from what is out of reach: both are 403. */
import type { FastifyRequest } from 'fastify';
import { principalOf } from '#api/auth/plugin.ts';
import { may } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { type ApiError, forbidden } from '#api/errors.ts';
import { findWorkspace, type Workspace } from './store.ts';

export function outOfReach(): ApiError {
  return forbidden('You are not authorized to access this resource');
}

/** @param id of a workspace or of a legacy environment @throws ApiError forbidden */
export async function readableWorkspace(
  { db }: Pick<Context, 'db'>,
  request: FastifyRequest,
  id: string,
): Promise<Workspace> {
  const workspace = await findWorkspace(db, id);
  if (workspace === null || !may(principalOf(request), workspace.id, 'read')) throw outOfReach();
  return workspace;
}
