/** Finds the workspace of a request, which is in the path of a client route or in the body of a management route. */
import type { FastifyRequest } from 'fastify';
import { principalOf, requireRight } from '#api/auth/plugin.ts';
import { may, rightOf } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { type ApiError, badRequest, existing, forbidden, NO_ACCESS } from '#api/errors.ts';
import { requestValue } from '#api/http/request-value.ts';
import { isRecord } from '#api/values/schemas.ts';
import { findWorkspace, type Workspace } from './store.ts';

export interface WithDatabase {
  readonly db: Database;
}

const slot = requestValue<Workspace>('workspace');

/** Returns a hook for client routes, before or after the body is read: 404 unless the path's workspace exists. */
export function loadPathWorkspace({ db }: WithDatabase): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    const { params } = request;
    slot.set(request, await existingWorkspace(db, isRecord(params) ? String(params.workspaceId) : ''));
  };
}

async function existingWorkspace(db: Database, id: string): Promise<Workspace> {
  return existing(await findWorkspace(db, id), 'Workspace', id);
}

interface NamedWorkspace {
  readonly version: 'v1' | 'v2';
  /** Whether a body may leave it out. Several integrations do, which works for keys with access to one workspace. */
  readonly isWorkspaceOptional?: boolean;
}

/**
 * Returns a hook for creating management routes, after the body is read: 400 without a workspace, 404 for an unknown one;
 * without the right that the method needs 401, on v2 403.
 */
export function loadBodyWorkspace(
  { db }: WithDatabase,
  { version, isWorkspaceOptional = false }: NamedWorkspace = { version: 'v1' },
): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    const [only, ...others] = isWorkspaceOptional ? principalOf(request).permissions.keys() : [];
    const scope = scopeIn(request.body) ?? (others.length === 0 ? only : null) ?? null;
    if (scope === null) throw scopeProblem('workspaceId must be provided');
    const workspace = await existingWorkspace(db, scope);
    const mayWrite = may(principalOf(request), workspace.id, rightOf(request.method));
    if (version === 'v2' && !mayWrite) throw forbidden(NO_ACCESS);
    requireRight(request, workspace.id);
    slot.set(request, workspace);
  };
}

/**
 * A hook for routes with an optional scope. It refuses one that is not a text with the usual error, before the schema
 * does.
 */
export async function checkScope({ body }: FastifyRequest): Promise<void> {
  scopeIn(body);
}

/** Returns the workspace that one of the hooks above found. */
export function workspaceOf(request: FastifyRequest): Workspace {
  return slot.get(request);
}

/**
 * Returns the scope id of a body; `workspaceId` takes precedence over `environmentId`.
 *
 * @returns null if there is none
 * @throws ApiError bad_request if it is not a string
 */
export function scopeIn(body: unknown): string | null {
  const scope = isRecord(body) ? (body.workspaceId ?? body.environmentId ?? null) : null;
  if (scope !== null && typeof scope !== 'string') throw scopeProblem('workspaceId must be a string');
  return scope;
}

function scopeProblem(problem: string): ApiError {
  return badRequest(problem, { workspaceId: problem });
}

/** @throws ApiError not_found for an unknown id, unauthorized without the right that the method needs */
export async function reachableWorkspace(
  { db }: WithDatabase,
  request: FastifyRequest,
  scope: string,
): Promise<Workspace> {
  const workspace = await existingWorkspace(db, scope);
  requireRight(request, workspace.id);
  return workspace;
}
