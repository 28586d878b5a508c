/** Who may do what, and what accounts leave behind: mails and the audit log. */
import type { Flag, Json, Row, Timestamp } from './columns.ts';

export type Permission = 'read' | 'write' | 'manage';
export type Role = 'owner' | 'manager' | 'member';

/** Keys that the service made for itself, once; what they sign stays valid over restarts. */
export interface SecretTable {
  name: string;
  /** base64url */
  value: string;
  createdAt: Timestamp;
}

export interface OrganizationTable extends Row {
  name: string;
  /** The one of the first start: its webhooks may reach what WEBHOOK_ALLOWED_TARGETS lists. */
  isOperators: Flag;
}

export interface UserTable extends Row {
  name: string;
  /** lower case */
  email: string;
  emailVerified: Timestamp | null;
  passwordHash: string | null;
  isActive: Flag;
  twoFactorEnabled: Flag;
  identityProvider: string;
  notificationSettings: Json;
  locale: string;
  lastLoginAt: Timestamp | null;
}

export interface MembershipTable {
  organizationId: string;
  userId: string;
  role: Role;
  createdAt: Timestamp;
}

export interface ApiKeyTable {
  id: string;
  organizationId: string;
  label: string;
  /** hex SHA-256 of the key */
  hashedKey: string;
  organizationRead: Flag;
  organizationWrite: Flag;
  createdBy: string | null;
  createdAt: Timestamp;
  lastUsedAt: Timestamp | null;
  /** On every workspace of the organization, also later ones; null: on those of `apiKeyPermissions`. */
  allWorkspaces: Permission | null;
}

export interface ApiKeyPermissionTable {
  apiKeyId: string;
  workspaceId: string;
  permission: Permission;
}

export interface SessionTable {
  /** hex SHA-256 of what the cookie carries */
  hashedToken: string;
  userId: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** A link that was mailed and serves once. */
export interface AccountTokenTable {
  /** hex SHA-256 of what the link carries */
  hashedToken: string;
  userId: string;
  purpose: 'verifyEmail' | 'resetPassword' | 'changeEmail';
  /** Where the link was sent. */
  email: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
  /** The name that the account gets when the address is verified; null: it keeps its own. */
  name: string | null;
  /** Likewise the password, for which the link's page asks; null: the link alone verifies. */
  passwordHash: string | null;
  /** How many passwords were tried with the link. */
  passwordAttempts: number;
}

export interface MailOutboxTable {
  id: string;
  createdAt: Timestamp;
  /** What the mail is for, e.g. `verifyEmail`; said in the log. */
  kind: string;
  recipient: string;
  replyTo: string | null;
  subject: string;
  /** Plain text; '' once it is sent, as it may carry the token of a link. */
  body: string;
  status: 'pending' | 'sent' | 'parked';
  /** Attempts begun. */
  attempts: number;
  /** While an attempt runs: when somebody else may try, should it never end. */
  nextAttemptAt: Timestamp;
  /** When it was sent or parked. */
  settledAt: Timestamp | null;
  lastError: string | null;
}

/** Never changed; deleted when it is old. */
export interface AuditEventTable {
  id: string;
  timestamp: Timestamp;
  action: string;
  actorId: string;
  actorType: 'user' | 'api' | 'system';
  targetId: string;
  targetType: string;
  status: 'success' | 'failure';
  organizationId: string | null;
  ipAddress: string;
  /** The request's id. */
  eventId: string;
  changes: Json;
}
