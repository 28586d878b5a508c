/** Organizations, people, workspaces and keys. Secrets, such as the token of a session or a link, are only hashes. */
import {
  flag,
  flagFromZero,
  having,
  type Indexes,
  index,
  key,
  number,
  oneOf,
  optionalOneOf,
  optionalText,
  ownedBy,
  referring,
  row,
  text,
  unique,
  uniqueText,
  without,
} from './schema-writer.ts';

export type Permission = 'read' | 'write' | 'manage';
/** Owners and managers run an organization. `member`, which Formbricks has too, gives no rights. */
export type Role = 'owner' | 'manager' | 'member';

export const accounts = {
  /** Keys that the service has generated. They are never replaced, so that signatures stay valid after a restart. */
  secrets: {
    name: key,
    /** The value in base64url. */
    value: text,
    createdAt: text,
  },
  organizations: {
    ...row,
    name: text,
    /** The organization of the first start. Its webhooks may reach what WEBHOOK_ALLOWED_TARGETS lists. */
    isOperators: flagFromZero,
    /** Time at which its owner deleted it. Its row goes after its workspaces. */
    deletingAt: optionalText,
  },
  users: {
    ...row,
    name: text,
    /** The address in lower case. */
    email: uniqueText,
    emailVerified: optionalText,
    passwordHash: optionalText,
    lastLoginAt: optionalText,
  },
  memberships: {
    organizationId: ownedBy('organizations'),
    userId: ownedBy('users'),
    role: oneOf<Role>(),
    createdAt: text,
  },
  sessions: {
    /** SHA-256 of the token in the cookie, in hexadecimal. */
    hashedToken: key,
    userId: ownedBy('users'),
    createdAt: text,
    expiresAt: text,
  },
  /** Links in mails that can be used once. */
  accountTokens: {
    /** SHA-256 of the token in the link, in hexadecimal. */
    hashedToken: key,
    userId: ownedBy('users'),
    purpose: oneOf<'verifyEmail' | 'resetPassword' | 'changeEmail'>(),
    email: text,
    expiresAt: text,
  },
  /** Rows are never changed. Old ones are deleted. */
  auditEvents: {
    id: key,
    timestamp: text,
    action: text,
    actorId: text,
    actorType: oneOf<'user' | 'api'>(),
    /** Ids in the path. */
    target: text,
    status: oneOf<'success' | 'failure'>(),
    ipAddress: text,
    /** Id of the request. */
    eventId: text,
    changes: text,
  },
  workspaces: {
    ...row,
    organizationId: ownedBy('organizations'),
    name: text,
    appSetupCompleted: flag,
    websiteSetupCompleted: flag,
    recontactDays: number,
    clickOutsideClose: flag,
    overlay: text,
    placement: text,
    inAppSurveyBranding: flag,
    styling: text,
    /** Time at which its owner deleted it. No route shows it any more, and a job deletes its rows. */
    deletingAt: optionalText,
  },
  apiKeys: {
    id: key,
    organizationId: ownedBy('organizations'),
    label: text,
    /** SHA-256 of the key, in hexadecimal. */
    hashedKey: uniqueText,
    createdBy: referring(optionalText, 'users', 'set null'),
    createdAt: text,
    lastUsedAt: optionalText,
    /**
     * Permission on every workspace of the organization, also later ones; null if only on those in
     * `apiKeyPermissions`.
     */
    allWorkspaces: optionalOneOf<Permission>(),
  },
  apiKeyPermissions: {
    apiKeyId: ownedBy('apiKeys'),
    workspaceId: ownedBy('workspaces'),
    permission: oneOf<Permission>(),
  },
  languages: { ...row, workspaceId: ownedBy('workspaces'), code: text, alias: optionalText },
};

export const indexesOfAccounts: Indexes = {
  organizations: [having('deletingAt', index('deleting', 'deletingAt'))],
  users: [without('emailVerified', index('unverified', 'id'))],
  memberships: [unique('organizationId', 'userId'), index('userId')],
  sessions: [index('userId'), index('expiresAt')],
  accountTokens: [index('userId', 'userId', 'purpose'), index('expiresAt')],
  auditEvents: [index('timestamp')],
  workspaces: [index('organizationId'), having('deletingAt', index('deleting', 'deletingAt'))],
  apiKeys: [index('organizationId'), index('createdBy')],
  apiKeyPermissions: [unique('apiKeyId', 'workspaceId'), index('workspaceId')],
  languages: [unique('workspaceId', 'code')],
};
