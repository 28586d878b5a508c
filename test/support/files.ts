/** Stores files and their rows, for tests that do not upload through the API. */
import type { TestApi } from './api-app.ts';

/** Writes the row that the API writes before it issues a grant. An existing row stays. */
export async function addFileRow(
  { context: { db, clock } }: TestApi,
  key: string,
  fields: { readonly createdAt?: string; readonly size?: number } = {},
): Promise<void> {
  const [workspaceId = '', access] = key.split('/');
  await db
    .insertInto('files')
    .values({
      key,
      workspaceId,
      access: access === 'public' ? 'public' : 'private',
      createdAt: new Date(clock()).toISOString(),
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
  await storage.put({ key, contentType: 'image/png' }, Buffer.from(bytes));
}
