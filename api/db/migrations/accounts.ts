/** Organizations, people, workspaces and keys. Secrets, such as the token of a session or a link, are only hashes. */
import {
  flag,
  flagFromZero,
  key,
  number,
  oneOf,
  optionalOneOf,
  optionalText,
  ownedBy,
  referring,
  row,
  table,
  text,
  uniqueText,
} from './schema-writer.ts';

export type Permission = 'read' | 'write' | 'manage';
/** Owners and managers run an organization. `member`, which Formbricks has too, gives no rights. */
export type Role = 'owner' | 'manager' | 'member';

const deleting = { columns: ['deletingAt'], only: [['deletingAt', 'is not', null]] } as const;

export const accounts = {
  /** Keys that the service has generated. They are never replaced, so that signatures stay valid after a restart. */
  secrets: table({
    name: key,
    /** The value in base64url. */
    value: text,
    createdAt: text,
  }),
  organizations: table(
    {
      ...row,
      name: text,
      /** The organization of the first start. Its webhooks may reach what WEBHOOK_ALLOWED_TARGETS lists. */
      isOperators: flagFromZero,
      /** Time at which its owner deleted it. Its row goes after its workspaces. */
      deletingAt: optionalText,
    },
    { indexes: { deleting } },
  ),
  users: table(
    {
      ...row,
      name: text,
      /** The address in lower case. */
      email: uniqueText,
      emailVerified: optionalText,
      passwordHash: optionalText,
      lastLoginAt: optionalText,
    },
    { indexes: { unverified: { columns: ['id'], only: [['emailVerified', 'is', null]] } } },
  ),
  memberships: table(
    {
      organizationId: ownedBy('organizations'),
      userId: ownedBy('users'),
      role: oneOf<Role>(),
      createdAt: text,
    },
    { primary: ['organizationId', 'userId'], indexes: { userId: { columns: ['userId'] } } },
  ),
  sessions: table(
    {
      /** SHA-256 of the token in the cookie, in hexadecimal. */
      hashedToken: key,
      userId: ownedBy('users'),
      createdAt: text,
      expiresAt: text,
    },
    { indexes: { userId: { columns: ['userId'] }, expiresAt: { columns: ['expiresAt'] } } },
  ),
  /** Links in mails that can be used once. */
  accountTokens: table(
    {
      /** SHA-256 of the token in the link, in hexadecimal. */
      hashedToken: key,
      userId: ownedBy('users'),
      purpose: oneOf<'verifyEmail' | 'resetPassword' | 'changeEmail'>(),
      email: text,
      createdAt: text,
      expiresAt: text,
    },
    {
      indexes: {
        userId: { columns: ['userId', 'purpose', 'createdAt'] },
        expiresAt: { columns: ['expiresAt'] },
      },
    },
  ),
  /** Rows are never changed. Old ones are deleted. */
  auditEvents: table(
    {
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
    { indexes: { timestamp: { columns: ['timestamp'] } } },
  ),
  workspaces: table(
    {
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
    { indexes: { organizationId: { columns: ['organizationId'] }, deleting } },
  ),
  apiKeys: table(
    {
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
    {
      indexes: {
        organizationId: { columns: ['organizationId'] },
        createdBy: { columns: ['createdBy'] },
      },
    },
  ),
  apiKeyPermissions: table(
    {
      apiKeyId: ownedBy('apiKeys'),
      workspaceId: ownedBy('workspaces'),
      permission: oneOf<Permission>(),
    },
    { primary: ['apiKeyId', 'workspaceId'], indexes: { workspaceId: { columns: ['workspaceId'] } } },
  ),
  languages: table(
    { ...row, workspaceId: ownedBy('workspaces'), code: text, alias: optionalText },
    { unique: [['workspaceId', 'code']] },
  ),
};
