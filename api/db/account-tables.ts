/** Tables of accounts and their rights, of mails, and of the audit log. */
import type { Flag, Json, Row, Timestamp } from './columns.ts';
import type { QueueColumns } from './event-tables.ts';

export type Permission = 'read' | 'write' | 'manage';
/** Owners and managers run an organization. `member`, which Formbricks has too, gives no rights. */
export type Role = 'owner' | 'manager' | 'member';

/** Keys that the service has generated. They are never replaced, so that signatures stay valid after a restart. */
export interface SecretTable {
  name: string;
  /** The value in base64url. */
  value: string;
  createdAt: Timestamp;
}

export interface OrganizationTable extends Row {
  name: string;
  /** The organization of the first start. Its webhooks may reach what WEBHOOK_ALLOWED_TARGETS lists. */
  isOperators: Flag;
  /** Time at which its owner deleted it. Its row goes after its workspaces. */
  deletingAt: Timestamp | null;
}

export interface UserTable extends Row {
  name: string;
  /** The address in lower case. */
  email: string;
  emailVerified: Timestamp | null;
  passwordHash: string | null;
  isActive: Flag;
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
  /** SHA-256 of the key, in hexadecimal. */
  hashedKey: string;
  organizationRead: Flag;
  organizationWrite: Flag;
  createdBy: string | null;
  createdAt: Timestamp;
  lastUsedAt: Timestamp | null;
  /**
   * Permission on every workspace of the organization, also later ones; null if only on those in `apiKeyPermissions`.
   */
  allWorkspaces: Permission | null;
}

export interface ApiKeyPermissionTable {
  apiKeyId: string;
  workspaceId: string;
  permission: Permission;
}

export interface SessionTable {
  /** SHA-256 of the token in the cookie, in hexadecimal. */
  hashedToken: string;
  userId: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** A link in a mail that can be used once. */
export interface AccountTokenTable {
  /** SHA-256 of the token in the link, in hexadecimal. */
  hashedToken: string;
  userId: string;
  purpose: 'verifyEmail' | 'resetPassword' | 'changeEmail';
  email: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
  /** Name that the account gets when the link is used; null leaves it unchanged. */
  name: string | null;
  /** Password that the account gets. The page behind the link asks for it; null if the link alone is enough. */
  passwordHash: string | null;
  /** Number of passwords that were tried with this link. */
  passwordAttempts: number;
}

export interface MailOutboxTable extends QueueColumns {
  createdAt: Timestamp;
  kind: string;
  recipient: string;
  replyTo: string | null;
  subject: string;
  /** Plain text. Cleared after sending, because it may contain the token of a link. */
  body: string;
  status: 'pending' | 'sent' | 'parked';
  lastError: string | null;
  /** The workspace that the mail is about; null for mails of accounts. */
  workspaceId: string | null;
}

/** Rows are never changed. Old ones are deleted. */
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
  /** Id of the request. */
  eventId: string;
  changes: Json;
}
