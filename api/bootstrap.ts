/**
 * The first start creates an organization with an owner, a workspace and an API key, so that the service can be used
 * at once. Generated credentials are shown once and stored only as hashes. Later starts find an organization and
 * change nothing.
 */
import { newApiKey } from '#api/auth/api-key.ts';
import type { Secrets } from '#api/config.ts';
import type { Context } from '#api/context.ts';
import { lockName } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { insertUser } from '#api/resources/accounts/store.ts';
import { type ApiKey, insertApiKey } from '#api/resources/api-keys/store.ts';
import { createOrganization } from '#api/resources/organizations/create.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';

interface FirstStart {
  readonly workspaceId: string;
  readonly apiKey: string;
  readonly email: string;
  /** The generated password; null if the operator chose it. */
  readonly password: string | null;
}

const PASSWORD_RANDOM_BYTES = 15;

/** @returns the credentials to show to the operator; null if this was not the first start */
export async function bootstrap(
  { db, clock, random, config, passwords }: Pick<Context, 'db' | 'clock' | 'random' | 'config' | 'passwords'>,
  secrets: Pick<Secrets, 'bootstrapApiKey' | 'bootstrapPassword'>,
): Promise<FirstStart | null> {
  if (await hasOrganization(db)) return null;

  const first: FirstStart = {
    workspaceId: config.bootstrap.workspaceId ?? newId(random),
    apiKey: secrets.bootstrapApiKey ?? newApiKey(random),
    email: config.bootstrap.email,
    password: secrets.bootstrapPassword === null ? newPassword(random) : null,
  };
  const passwordHash = await passwords.hash(secrets.bootstrapPassword ?? first.password ?? '');
  const now = toTimestamp(clock());

  return db.transaction().execute(async (trx) => {
    // Check again inside the transaction, because two processes may be starting on the same new database.
    await lockName(trx, 'first start');
    if (await hasOrganization(trx)) return null;
    const owner = { name: 'Owner', email: first.email, passwordHash, emailVerified: now };
    const userId = await insertUser(trx, owner, now, random);
    const { organizationId, workspaceId } = await createOrganization(
      trx,
      {
        name: 'My organization',
        ownerId: userId,
        workspaceId: first.workspaceId,
        createdAt: now,
        isOperators: true,
      },
      random,
    );
    const key: ApiKey = {
      id: newId(random),
      organizationId,
      label: 'First key',
      createdAt: now,
      createdBy: userId,
      lastUsedAt: null,
      allWorkspaces: null,
      workspacePermissions: [{ workspaceId, permission: 'manage' }],
    };
    await insertApiKey(trx, key, first.apiKey);
    return first;
  });
}

/** Returns the text that the operator sees once: the credentials, and two calls that can be copied. */
export function firstStartNotice(first: FirstStart, publicUrl: string): string {
  return [
    'First start. These are shown only now; keep them:',
    '',
    `  workspace id  ${first.workspaceId}`,
    `  API key       ${first.apiKey}`,
    `  owner         ${first.email}`,
    ...(first.password === null ? [] : [`  password      ${first.password}`]),
    '',
    'Try:',
    '',
    `  curl -H 'x-api-key: ${shellQuoted(first.apiKey)}' ${publicUrl}/api/v1/management/me`,
    `  curl ${publicUrl}/api/v1/client/${first.workspaceId}/environment`,
    '',
  ].join('\n');
}

function shellQuoted(text: string): string {
  return text.replaceAll("'", "'\\''");
}

/** Creates a password. It has an upper-case letter and a digit, as every password must. */
function newPassword(random: Random): string {
  return `F1${Buffer.from(random(PASSWORD_RANDOM_BYTES)).toString('base64url')}`;
}

export async function hasOrganization(db: Database): Promise<boolean> {
  return (await db.selectFrom('organizations').select('id').limit(1).executeTakeFirst()) !== undefined;
}
