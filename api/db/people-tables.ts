import type { Role } from './account-tables.ts';
import type { Json, Row, Timestamp } from './columns.ts';

export type TeamRole = 'admin' | 'contributor';
export type TeamPermission = 'read' | 'readWrite' | 'manage';

/** Invites. An address has at most one in an organization. An invite is deleted when it is accepted. */
export interface InviteTable {
  id: string;
  createdAt: Timestamp;
  organizationId: string;
  /** The address in lower case. */
  email: string;
  role: Role;
  /** Array of ids. Teams that no longer exist are ignored. */
  teamIds: Json;
  hashedToken: string;
  invitedBy: string;
  expiresAt: Timestamp;
  /** Revoked invites are kept for a day to count the mails of a day. */
  revokedAt: Timestamp | null;
}

export interface TeamTable extends Row {
  organizationId: string;
  name: string;
}

/** The user must be a member of the team's organization. */
export interface TeamMemberTable {
  teamId: string;
  userId: string;
  role: TeamRole;
  createdAt: Timestamp;
}

/** The workspace must belong to the team's organization. */
export interface TeamWorkspaceTable {
  teamId: string;
  workspaceId: string;
  permission: TeamPermission;
  createdAt: Timestamp;
  updatedAt: Timestamp;
}
