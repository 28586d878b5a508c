/** v3 does not tell what exists from what is out of reach: both are 403. */
import type { FastifyRequest } from 'fastify';
import { principalOf } from '#api/auth/plugin.ts';
import { may, type Right } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { type ApiError, forbidden, NO_ACCESS } from '#api/errors.ts';
import { findWorkspace, type Workspace } from './store.ts';

export function outOfReach(): ApiError {
  return forbidden(NO_ACCESS);
}

/** @param id of a workspace or of a legacy environment @throws ApiError forbidden */
export function readableWorkspace(
  context: Pick<Context, 'db'>,
  request: FastifyRequest,
  id: string,
): Promise<Workspace> {
  return workspaceWith(context, request, id, 'read');
}

/** @param id of a workspace or of a legacy environment @throws ApiError forbidden */
export function writableWorkspace(
  context: Pick<Context, 'db'>,
  request: FastifyRequest,
  id: string,
): Promise<Workspace> {
  return workspaceWith(context, request, id, 'write');
}

async function workspaceWith(
  { db }: Pick<Context, 'db'>,
  request: FastifyRequest,
  id: string,
  right: Right,
): Promise<Workspace> {
  const workspace = await findWorkspace(db, id);
  if (workspace === null || !may(principalOf(request), workspace.id, right)) throw outOfReach();
  return workspace;
}
