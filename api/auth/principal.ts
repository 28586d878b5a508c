/** The caller of a request, with its rights. */

import type { Permission, Role, TeamPermission } from '#api/db/schema.ts';

export type { Permission, Role } from '#api/db/schema.ts';

/** manage includes write, and write includes read. */
export type Right = Permission;

export interface ApiKeyPrincipal {
  readonly kind: 'apiKey';
  readonly apiKeyId: string;
  readonly organizationId: string;
  readonly organizationAccess: { readonly read: boolean; readonly write: boolean };
  /** Whether the key manages all workspaces, also later ones. Only such a key sees and changes people. */
  readonly managesAll: boolean;
  /** Permissions by workspace id, in the order of the ids. */
  readonly permissions: ReadonlyMap<string, Permission>;
}

export interface SessionPrincipal {
  readonly kind: 'session';
  readonly userId: string;
  /** Roles by organization id, in the order in which the user joined. */
  readonly roles: ReadonlyMap<string, Role>;
  /**
   * Permissions by workspace id, in the order of the ids. They come from the role in the organization or from a team.
   */
  readonly permissions: ReadonlyMap<string, Permission>;
}

export type Principal = ApiKeyPrincipal | SessionPrincipal;

const ranks: Readonly<Record<Permission, number>> = { read: 1, write: 2, manage: 3 };

const roleRanks: Readonly<Record<Role, number>> = { member: 1, manager: 2, owner: 3 };

const permissionOfTeam: Readonly<Record<TeamPermission, Permission>> = {
  read: 'read',
  readWrite: 'write',
  manage: 'manage',
};

/** Whether a role runs the organization: its people, its keys and all of its workspaces. Owners and managers do. */
export function runsOrganization(role: Role | undefined): boolean {
  return role === 'owner' || role === 'manager';
}

/**
 * Returns the permission of a person in a workspace. A member has only what teams give; the highest of several counts.
 *
 * @param teams permissions of the person's teams in this workspace
 * @returns null for no permission, not even to read
 */
export function permissionIn(role: Role, teams: readonly TeamPermission[]): Permission | null {
  if (runsOrganization(role)) return 'manage';
  const given = teams.map((permission) => permissionOfTeam[permission]);
  return given.reduce<Permission | null>(
    (most, one) => (most === null || ranks[one] > ranks[most] ? one : most),
    null,
  );
}

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
  if (now.kind === 'apiKey') {
    if (before.kind !== 'apiKey') return true;
    const { read, write } = before.organizationAccess;
    if (before.managesAll && !now.managesAll) return true;
    return (read && !now.organizationAccess.read) || (write && !now.organizationAccess.write);
  }
  if (before.kind !== 'session') return true;
  return [...before.roles].some(([id, role]) => {
    const kept = now.roles.get(id);
    return kept === undefined || roleRanks[kept] < roleRanks[role];
  });
}
