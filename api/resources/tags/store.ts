/** Tags of a workspace, and the responses that have them. This file writes the tables `tags` and `responseTags`. */
import { countRows } from '#api/db/count.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { invalidFields } from '#api/errors.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { isId } from '#api/ids.ts';
import type { Tag } from '#api/resources/responses/store.ts';

const NAME_LENGTH_MAX = 255;

interface CountedTag extends Tag {
  readonly count: number;
}

export async function findTag(db: Database, id: string): Promise<Tag | null> {
  if (!isId(id)) return null;
  return (await db.selectFrom('tags').selectAll().where('id', '=', id).executeTakeFirst()) ?? null;
}

/** Lists tags by workspace, in each by name. This is the order of the index. */
export async function listTags(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly CountedTag[]> {
  if (workspaceIds.length === 0) return [];
  const tags = await db
    .selectFrom('tags')
    .selectAll()
    .where('workspaceId', 'in', workspaceIds)
    .orderBy('workspaceId')
    .orderBy('name')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  return withCounts(db, tags);
}

/** Counts in the index on the tags of responses. */
export async function withCounts(db: Database, tags: readonly Tag[]): Promise<readonly CountedTag[]> {
  if (tags.length === 0) return [];
  const rows = await db
    .selectFrom('responseTags')
    .select((select) => ['tagId', select.fn.countAll().as('count')])
    .where(
      'tagId',
      'in',
      tags.map(({ id }) => id),
    )
    .groupBy('tagId')
    .execute();
  const counts = new Map(rows.map(({ count, tagId }) => [tagId, Number(count)]));
  return tags.map((tag) => ({ ...tag, count: counts.get(tag.id) ?? 0 }));
}

export function countTags(db: Database, workspaceId: string): Promise<number> {
  return countRows(db.selectFrom('tags').where('workspaceId', '=', workspaceId));
}

/** Finds a tag by name. Names are case-sensitive. */
export async function findTagByName(db: Database, workspaceId: string, name: string): Promise<Tag | null> {
  const row = await db
    .selectFrom('tags')
    .selectAll()
    .where('workspaceId', '=', workspaceId)
    .where('name', '=', name)
    .executeTakeFirst();
  return row ?? null;
}

/** @throws the driver's unique violation if the name is taken */
export async function insertTag(db: Database, tag: Tag): Promise<void> {
  await db.insertInto('tags').values(tag).execute();
}

/** @returns false if the name is taken in the workspace */
export async function renameTag(db: Database, id: string, name: string, now: Timestamp): Promise<boolean> {
  try {
    await db.updateTable('tags').set({ name, updatedAt: now }).where('id', '=', id).execute();
    return true;
  } catch (error) {
    if (isUniqueViolation(error, 'tags.workspaceId', 'tags.name')) return false;
    throw error;
  }
}

export async function listTagsOfResponse(db: Database, responseId: string): Promise<readonly Tag[]> {
  return db
    .selectFrom('responseTags')
    .innerJoin('tags', 'tags.id', 'responseTags.tagId')
    .selectAll('tags')
    .where('responseTags.responseId', '=', responseId)
    .orderBy('tags.name')
    .execute();
}

/** Gives a tag to a response. Does nothing if the response has it. */
export async function tagResponse(db: Database, responseId: string, tagId: string): Promise<void> {
  await db
    .insertInto('responseTags')
    .values({ responseId, tagId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Removes a tag from a response. @returns false if the response did not have it */
export async function untagResponse(db: Database, responseId: string, tagId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('responseTags')
    .where('responseId', '=', responseId)
    .where('tagId', '=', tagId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** @returns the name without blanks around it @throws ApiError invalid_fields */
export function readTagName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > NAME_LENGTH_MAX) {
    throw invalidFields({ name: `must have 1 to ${NAME_LENGTH_MAX} characters besides blanks around it` });
  }
  return name;
}
