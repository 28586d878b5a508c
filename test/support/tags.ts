/** Inserts tags of the first workspace into the database of an API in this process. No route creates tags. */
import { newId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { type TestApi, workspaceId } from './api-app.ts';

/** Finds or creates a tag, and gives it to responses. @returns its id */
export async function addTag(
  { context: { db, clock, random } }: Pick<TestApi, 'context'>,
  name: string,
  ...responseIds: readonly string[]
): Promise<string> {
  const now = toTimestamp(clock());
  const known = await db
    .selectFrom('tags')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where('name', '=', name)
    .executeTakeFirst();
  const tag = { id: known?.id ?? newId(random), workspaceId, name, createdAt: now, updatedAt: now };
  if (known === undefined) await db.insertInto('tags').values(tag).execute();
  for (const responseId of responseIds) {
    await db.insertInto('responseTags').values({ responseId, tagId: tag.id }).execute();
  }
  return tag.id;
}
