/** Stores files and their rows, for tests that do not upload through the API. */
import { Readable } from 'node:stream';
import type { TestApi } from './api-app.ts';

/** Writes the row that the API writes before it issues a grant. An existing row stays. */
export async function addFileRow(
  { context: { db, clock } }: TestApi,
  key: string,
  fields: { readonly storedAt?: string; readonly createdAt?: string; readonly countedBytes?: number } = {},
): Promise<void> {
  const [workspaceId = '', access] = key.split('/');
  await db
    .insertInto('files')
    .values({
      key,
      workspaceId,
      access: access === 'public' ? 'public' : 'private',
      surveyId: null,
      responseId: null,
      size: null,
      storedAt: null,
      createdAt: new Date(clock()).toISOString(),
      countedBytes: 0,
      claimedAt: null,
      removedAt: null,
      ...fields,
    })
    .onConflict((conflict) => conflict.column('key').doNothing())
    .execute();
}

/** Stores a file as an upload does, without its row. */
export async function receiveFile(
  { context: { storage } }: TestApi,
  key: string,
  bytes: string | Buffer,
): Promise<void> {
  const object = { key, contentType: 'image/png', bytesMax: 1_000_000 };
  await storage.receive?.(object, Readable.from([Buffer.from(bytes)]));
}
