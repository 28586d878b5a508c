/** Tags of a workspace, and the responses that have them. This file writes the tables `tags` and `responseTags`. */
import { isUniqueViolation } from '#api/db/database.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { invalidFields } from '#api/errors.ts';
import { isId } from '#api/ids.ts';
import type { Tag } from '#api/resources/responses/store.ts';

const NAME_LENGTH_MAX = 255;
/** Maximum number of tags in a list, which has no pages. */
const TAGS_MAX = 1_000;

interface CountedTag extends Tag {
  readonly count: number;
}

export async function findTag(db: Database, id: string): Promise<Tag | null> {
  if (!isId(id)) return null;
  return (await db.selectFrom('tags').selectAll().where('id', '=', id).executeTakeFirst()) ?? null;
}

/** Lists the tags of a workspace by name. */
export async function listTags(db: Database, workspaceId: string): Promise<readonly CountedTag[]> {
  const tags = await db
    .selectFrom('tags')
    .selectAll()
    .where('workspaceId', '=', workspaceId)
    .orderBy('name')
    .limit(TAGS_MAX)
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

/** @returns the name without blanks around it @throws ApiError invalid_fields */
export function readTagName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > NAME_LENGTH_MAX) {
    throw invalidFields({ name: `must have 1 to ${NAME_LENGTH_MAX} characters besides blanks around it` });
  }
  return name;
}
