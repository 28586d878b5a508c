/** The caller of a request, with its rights. */

import type { Permission } from '#api/db/schema.ts';

export type { Permission } from '#api/db/schema.ts';

/** manage includes write, and write includes read. */
export type Right = Permission;

export interface ApiKeyPrincipal {
  readonly kind: 'apiKey';
  readonly apiKeyId: string;
  readonly organizationId: string;
  /** Permissions by workspace id, in the order of the ids. */
  readonly permissions: ReadonlyMap<string, Permission>;
}

export interface SessionPrincipal {
  readonly kind: 'session';
  readonly userId: string;
  /** Ids of the organizations that the user runs, in the order in which the user joined. */
  readonly organizationIds: readonly string[];
  /** Manage on all workspaces of these organizations, in the order of the ids. */
  readonly permissions: ReadonlyMap<string, Permission>;
}

export type Principal = ApiKeyPrincipal | SessionPrincipal;

const ranks: Readonly<Record<Permission, number>> = { read: 1, write: 2, manage: 3 };

export function rightOf(method: string): Right {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return 'read';
    case 'DELETE':
      return 'manage';
    default:
      return 'write';
  }
}

export function may(principal: Principal, workspaceId: string, right: Right): boolean {
  const granted = principal.permissions.get(workspaceId);
  return granted !== undefined && ranks[granted] >= ranks[right];
}

/** Whether the same caller has lost any right. */
export function hasLess(now: Principal, before: Principal): boolean {
  if ([...before.permissions].some(([workspaceId, right]) => !may(now, workspaceId, right))) return true;
  if (now.kind === 'apiKey') return before.kind !== 'apiKey';
  return before.kind !== 'session' || before.organizationIds.some((id) => !now.organizationIds.includes(id));
}
