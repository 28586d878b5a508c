/** Tags of a workspace, and the number of responses that have them. */

import type { Database } from '#api/db/schema.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { invalidFields, unprocessable } from '#api/errors.ts';
import type { Tag } from '#api/resources/responses/store.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';

const NAME_LENGTH_MAX = 255;

export const tags = workspaceTable<Tag>('tags', { order: ['workspaceId', 'name'] });

/** Counts in the index on the tags of responses. */
export async function withCounts(
  db: Database,
  tags: readonly Tag[],
): Promise<readonly (Tag & { readonly count: number })[]> {
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

/**
 * @returns false if it was deleted meanwhile
 * @throws ApiError unprocessable_content if the name is taken in the workspace
 */
export function renameTag(db: Database, tag: Tag): Promise<boolean> {
  const taken = unprocessable({ name: 'Another tag of the workspace has this name; merge the two instead' });
  return unlessTaken(['tags.workspaceId', 'tags.name'], taken, () => tags.update(db, tag));
}

/** @returns the name without blanks around it @throws ApiError invalid_fields */
export function readTagName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > NAME_LENGTH_MAX) {
    throw invalidFields({ name: `must have 1 to ${NAME_LENGTH_MAX} characters besides blanks around it` });
  }
  return name;
}
