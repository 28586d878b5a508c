/**
 * Creates and finds API keys, and reads them from requests.
 *
 * The database has only the SHA-256 of a key. A fast hash is enough, because a key is 32 random bytes that nobody can
 * guess. A key that the operator sets (BOOTSTRAP_API_KEY) is as strong as the operator made it.
 */
import { createHash } from 'node:crypto';
import type { ApiKeyTable, Database, Permission, Timestamp } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { createBookkeeping } from '#api/work/bookkeeping.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { ApiKeyPrincipal } from './principal.ts';

const KEY_PREFIX = 'fbk_';
const KEY_BYTES = 32;
/** Maximum length of a key. Refusing longer texts here keeps hashing cheap. */
const KEY_LENGTH_MAX = 512;
/** `lastUsedAt` is written at most this often for each key, so that reads do not become writes. */
const LAST_USED_PRECISION_MS: Millis = 30_000;

export function newApiKey(random: Random): string {
  return KEY_PREFIX + Buffer.from(random(KEY_BYTES)).toString('base64url');
}

export function hashApiKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/**
 * Reads `x-api-key`, or else `Authorization: Bearer fbk_…`.
 *
 * @returns null if there is none; a blank value counts as none
 */
export function presentedKey(headers: {
  readonly 'x-api-key'?: string | string[] | undefined;
  readonly authorization?: string | undefined;
}): string | null {
  const header = headers['x-api-key'];
  // Node joins repeated headers of this name with a comma. The result matches no key.
  const key = (Array.isArray(header) ? header.join(',') : (header ?? '')).trim();
  if (key !== '') return key;
  const bearer = /^bearer +(fbk_\S+)\s*$/i.exec(headers.authorization ?? '');
  return bearer?.[1] ?? null;
}

interface FoundApiKey {
  readonly principal: ApiKeyPrincipal;
  readonly lastUsedAt: Timestamp | null;
}

/** Finds the owner and the permissions of a key. @returns null if there is no such key */
export async function findApiKey(db: Database, key: string): Promise<FoundApiKey | null> {
  if (key.length > KEY_LENGTH_MAX) return null;
  const row = await db
    .selectFrom('apiKeys')
    .selectAll()
    .where('hashedKey', '=', hashApiKey(key))
    .executeTakeFirst();
  if (row === undefined) return null;
  const permissions = await permissionsOf(db, row);
  return {
    lastUsedAt: row.lastUsedAt,
    principal: {
      kind: 'apiKey',
      apiKeyId: row.id,
      organizationId: row.organizationId,
      permissions,
    },
  };
}

async function permissionsOf(
  db: Database,
  { id, organizationId, allWorkspaces }: ApiKeyTable,
): Promise<ReadonlyMap<string, Permission>> {
  if (allWorkspaces !== null) {
    const workspaces = await db
      .selectFrom('workspaces')
      .select('id')
      .where('organizationId', '=', organizationId)
      .where('deletingAt', 'is', null)
      .orderBy('id')
      .execute();
    return new Map(workspaces.map((workspace) => [workspace.id, allWorkspaces]));
  }
  const listed = await db
    .selectFrom('apiKeyPermissions')
    .select(['workspaceId', 'permission'])
    .where('apiKeyId', '=', id)
    .orderBy('workspaceId')
    .execute();
  return new Map(listed.map(({ workspaceId, permission }) => [workspaceId, permission]));
}

/**
 * Returns a function that writes `lastUsedAt`, if the stored time is old enough. No request waits for the write, and a
 * failed one is not repeated.
 */
export function createUseRecorder(db: Database, clock: Clock): (key: FoundApiKey) => void {
  const note = createBookkeeping();
  return ({ principal: { apiKeyId }, lastUsedAt }) => {
    const now = clock();
    const isRecent = lastUsedAt !== null && Math.abs(now - Date.parse(lastUsedAt)) < LAST_USED_PRECISION_MS;
    if (isRecent) return;
    const lastUse = { lastUsedAt: toTimestamp(now) };
    note(apiKeyId, () => db.updateTable('apiKeys').set(lastUse).where('id', '=', apiKeyId).execute());
  };
}
