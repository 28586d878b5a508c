/**
 * API keys: how they are made, presented and found.
 *
 * At rest there is only the SHA-256 of a key. A fast hash is sound here because a key is 32 random bytes, not a
 * password: there is nothing to guess. A key of the operator's own (BOOTSTRAP_API_KEY) is as strong as it was chosen.
 */
import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import type { Random } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { ApiKeyPrincipal } from './principal.ts';

const KEY_PREFIX = 'fbk_';
const KEY_BYTES = 32;
/** Longer texts are not keys; refusing them here keeps hashing cheap. */
const KEY_LENGTH_MAX = 512;
/** `lastUsedAt` is written at most this often per key, so that reads do not become writes. */
const LAST_USED_PRECISION: Millis = 30_000;

export function newApiKey(random: Random): string {
  return KEY_PREFIX + Buffer.from(random(KEY_BYTES)).toString('base64url');
}

export function hashApiKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/**
 * The key a request presents: `x-api-key`, or `Authorization: Bearer fbk_…`; the former decides when both are there.
 *
 * @returns null when there is none; blank counts as none
 */
export function presentedKey(headers: {
  readonly 'x-api-key'?: string | string[] | undefined;
  readonly authorization?: string | undefined;
}): string | null {
  const header = headers['x-api-key'];
  // Node joins repeated headers of this name with a comma, which then matches no key.
  const key = (Array.isArray(header) ? header.join(',') : (header ?? '')).trim();
  if (key !== '') return key;
  const bearer = /^bearer +(fbk_\S+)\s*$/i.exec(headers.authorization ?? '');
  return bearer?.[1] ?? null;
}

/** Finds who a key belongs to, and notes its use. null: there is no such key. */
export async function authenticateApiKey(
  db: Kysely<Database>,
  key: string,
  clock: Clock,
): Promise<ApiKeyPrincipal | null> {
  if (key.length > KEY_LENGTH_MAX) return null;
  const row = await db
    .selectFrom('apiKeys')
    .selectAll()
    .where('hashedKey', '=', hashApiKey(key))
    .executeTakeFirst();
  if (row === undefined) return null;
  const permissions = await db
    .selectFrom('apiKeyPermissions')
    .select(['workspaceId', 'permission'])
    .where('apiKeyId', '=', row.id)
    .orderBy('workspaceId')
    .execute();

  const now = clock();
  if (row.lastUsedAt === null || now - Date.parse(row.lastUsedAt) >= LAST_USED_PRECISION) {
    await db
      .updateTable('apiKeys')
      .set({ lastUsedAt: toTimestamp(now) })
      .where('id', '=', row.id)
      .execute();
  }
  return {
    kind: 'apiKey',
    apiKeyId: row.id,
    organizationId: row.organizationId,
    organizationAccess: { read: row.organizationRead === 1, write: row.organizationWrite === 1 },
    permissions: new Map(permissions.map(({ workspaceId, permission }) => [workspaceId, permission])),
  };
}
