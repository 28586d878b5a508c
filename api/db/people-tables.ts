/** Who is invited to an organization, and the teams through which its members reach workspaces. */
import type { Role } from './account-tables.ts';
import type { Json, Row, Timestamp } from './columns.ts';

export type TeamRole = 'admin' | 'contributor';
export type TeamPermission = 'read' | 'readWrite' | 'manage';

/** At most one for an address in an organization. It goes when it is accepted. */
export interface InviteTable {
  id: string;
  createdAt: Timestamp;
  organizationId: string;
  /** lower case */
  email: string;
  role: Role;
  /** An array of ids; teams that are gone by then are passed over. */
  teamIds: Json;
  /** hex SHA-256 of what the link carries */
  hashedToken: string;
  invitedBy: string;
  expiresAt: Timestamp;
  /** Kept for a day, so that the mails of a day can be counted. */
  revokedAt: Timestamp | null;
}

export interface TeamTable extends Row {
  organizationId: string;
  name: string;
}

/** Only members of the team's organization. */
export interface TeamMemberTable {
  teamId: string;
  userId: string;
  role: TeamRole;
  createdAt: Timestamp;
}

/** Only workspaces of the team's organization. */
export interface TeamWorkspaceTable {
  teamId: string;
  workspaceId: string;
  permission: TeamPermission;
  createdAt: Timestamp;
  updatedAt: Timestamp;
}
