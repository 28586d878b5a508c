/** Who is calling, and what they may do. */

import type { Permission, Role } from '#api/db/schema.ts';

export type { Permission, Role } from '#api/db/schema.ts';

/** What an operation needs. manage includes write, write includes read. */
export type Right = Permission;

export interface ApiKeyPrincipal {
  readonly kind: 'apiKey';
  readonly apiKeyId: string;
  readonly organizationId: string;
  readonly organizationAccess: { readonly read: boolean; readonly write: boolean };
  /** By workspace id, in the order of the ids. */
  readonly permissions: ReadonlyMap<string, Permission>;
}

export interface SessionPrincipal {
  readonly kind: 'session';
  readonly userId: string;
  /** The session's row; never the token itself. */
  readonly hashedToken: string;
  /** By organization id, in the order in which the user joined. */
  readonly roles: ReadonlyMap<string, Role>;
  /** By workspace id, in the order of the ids: every workspace of the user's organizations, as the role allows. */
  readonly permissions: ReadonlyMap<string, Permission>;
}

export type Principal = ApiKeyPrincipal | SessionPrincipal;

const ranks: Readonly<Record<Permission, number>> = { read: 1, write: 2, manage: 3 };

/** There are no teams here, through which a member could be given more. */
export const permissionOfRole: Readonly<Record<Role, Permission>> = {
  owner: 'manage',
  manager: 'manage',
  member: 'read',
};

/** The right a method needs. */
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

/** The workspaces in which the caller may do this. */
export function workspacesWith(principal: Principal, right: Right): readonly string[] {
  return [...principal.permissions.keys()].filter((id) => may(principal, id, right));
}
