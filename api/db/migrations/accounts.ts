/** Organizations, people, workspaces and keys. Secrets, such as the token of a session or a link, are only hashes. */
import {
  key,
  number,
  numberFromZero,
  optionalText,
  optionalUniqueText,
  ownedBy,
  referring,
  row,
  type SchemaWriter,
  text,
  uniqueText,
} from './schema-writer.ts';

export async function createAccounts(write: SchemaWriter): Promise<void> {
  await write.table('secrets', { name: key, value: text, createdAt: text });
  await write.table('organizations', {
    ...row,
    name: text,
    isOperators: numberFromZero,
    deletingAt: optionalText,
  });
  await write.index('organizations', 'deleting', ['deletingAt'], ['deletingAt', 'is not', null]);
  await write.table('users', {
    ...row,
    name: text,
    email: uniqueText,
    emailVerified: optionalText,
    passwordHash: optionalText,
    isActive: number,
    identityProvider: text,
    notificationSettings: text,
    locale: text,
    lastLoginAt: optionalText,
  });
  await write.index('users', 'unverified', ['id'], ['emailVerified', 'is', null]);
  await write.table(
    'memberships',
    { organizationId: ownedBy('organizations'), userId: ownedBy('users'), role: text, createdAt: text },
    { primary: ['organizationId', 'userId'] },
  );
  await write.index('memberships', 'userId', ['userId']);
  await write.table('sessions', {
    hashedToken: key,
    userId: ownedBy('users'),
    createdAt: text,
    expiresAt: text,
  });
  await write.index('sessions', 'userId', ['userId']);
  await write.index('sessions', 'expiresAt', ['expiresAt']);
  await write.table('accountTokens', {
    hashedToken: key,
    userId: ownedBy('users'),
    purpose: text,
    email: text,
    createdAt: text,
    expiresAt: text,
    name: optionalText,
    passwordHash: optionalText,
    passwordAttempts: numberFromZero,
  });
  await write.index('accountTokens', 'userId', ['userId', 'purpose', 'createdAt']);
  await write.index('accountTokens', 'expiresAt', ['expiresAt']);
  await write.table('auditEvents', {
    id: key,
    timestamp: text,
    action: text,
    actorId: text,
    actorType: text,
    targetId: text,
    targetType: text,
    status: text,
    organizationId: optionalText,
    ipAddress: text,
    eventId: text,
    changes: text,
  });
  await write.index('auditEvents', 'timestamp', ['timestamp']);
}

export async function createWorkspaces(write: SchemaWriter): Promise<void> {
  await write.table('workspaces', {
    ...row,
    organizationId: ownedBy('organizations'),
    name: text,
    legacyEnvironmentId: optionalUniqueText,
    appSetupCompleted: number,
    websiteSetupCompleted: number,
    recontactDays: number,
    clickOutsideClose: number,
    overlay: text,
    placement: text,
    inAppSurveyBranding: number,
    styling: text,
    deletingAt: optionalText,
  });
  await write.index('workspaces', 'organizationId', ['organizationId']);
  await write.index('workspaces', 'deleting', ['deletingAt'], ['deletingAt', 'is not', null]);
  await write.table('apiKeys', {
    id: key,
    organizationId: ownedBy('organizations'),
    label: text,
    hashedKey: uniqueText,
    organizationRead: number,
    organizationWrite: number,
    createdBy: referring(optionalText, 'users', 'set null'),
    createdAt: text,
    lastUsedAt: optionalText,
    allWorkspaces: optionalText,
  });
  await write.index('apiKeys', 'organizationId', ['organizationId']);
  await write.index('apiKeys', 'createdBy', ['createdBy']);
  await write.table(
    'apiKeyPermissions',
    { apiKeyId: ownedBy('apiKeys'), workspaceId: ownedBy('workspaces'), permission: text },
    { primary: ['apiKeyId', 'workspaceId'] },
  );
  await write.index('apiKeyPermissions', 'workspaceId', ['workspaceId']);
  await write.table(
    'languages',
    { ...row, workspaceId: ownedBy('workspaces'), code: text, alias: optionalText },
    { unique: [['workspaceId', 'code']] },
  );
}
