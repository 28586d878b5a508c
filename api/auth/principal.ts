/** Who is calling, and what they may do (contract auth.md §3 and §4). */

export type Permission = 'read' | 'write' | 'manage';

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

export type Principal = ApiKeyPrincipal;

const ranks: Readonly<Record<Permission, number>> = { read: 1, write: 2, manage: 3 };

/** The right a method needs (contract management-api.md §0). */
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
