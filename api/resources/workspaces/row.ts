/** Finds the row of a workspace by the id in the path of a management route. */
import type { FastifyRequest } from 'fastify';
import { principalOf, requireRight } from '#api/auth/plugin.ts';
import { may } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { existing, notFound } from '#api/errors.ts';
import { requestValue } from '#api/http/request-value.ts';
import { isId } from '#api/values/ids.ts';
import { isRecord } from '#api/values/schemas.ts';
import { findWorkspace } from './store.ts';

interface OfWorkspace {
  readonly workspaceId: string;
}

type Find<R extends OfWorkspace> = (db: Database, id: string) => Promise<R | null>;

interface WorkspaceRow<R extends OfWorkspace> {
  /** A hook that runs before the body is read: 404 without the row, 401 without the right that the method needs. */
  readonly load: (request: FastifyRequest) => Promise<void>;
  /** The row that the hook found. */
  readonly of: (request: FastifyRequest) => R;
}

export function workspaceRow<R extends OfWorkspace>({
  db,
  type,
  param,
  find,
}: {
  readonly db: Database;
  readonly type: string;
  readonly param: string;
  readonly find: Find<R>;
}): WorkspaceRow<R> {
  const slot = requestValue<R>(type);
  return {
    async load(request) {
      const id = isRecord(request.params) ? String(request.params[param]) : '';
      const row = existing(isId(id) ? await find(db, id) : null, type, id);
      // Nobody has a right in a workspace that is being deleted. Its rows no longer exist for callers.
      const isReadable = may(principalOf(request), row.workspaceId, 'read');
      if (!isReadable && (await findWorkspace(db, row.workspaceId)) === null) throw notFound(type, id);
      requireRight(request, row.workspaceId);
      slot.set(request, row);
    },
    of: slot.get,
  };
}
