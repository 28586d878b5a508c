/**
 * Deletes a tag, or merges it into another one. Each is a single transaction. If many responses have the tag, they lose
 * it or get the other one in small steps before, so that other writers need not wait. After an interruption the tag has
 * fewer responses, and the same request finishes the work. No response ever lacks both tags.
 */
import { hasManyWriters, lockRows } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { inSlices, SLICE_ROWS } from '#api/db/slices.ts';

/** @returns false if the tag was already deleted */
export function deleteTag(db: Database, id: string): Promise<boolean> {
  return removeTag(db, { id, intoId: null });
}

/**
 * Gives every response that has the tag the other one, and deletes the tag.
 *
 * @returns false if one of them was deleted, or they are in different workspaces
 */
export function mergeTag(db: Database, id: string, intoId: string): Promise<boolean> {
  return removeTag(db, { id, intoId });
}

interface Removal {
  readonly id: string;
  /** Id of the tag that replaces the deleted one; null if none does. */
  readonly intoId: string | null;
}

async function removeTag(db: Database, removal: Removal): Promise<boolean> {
  const { id, intoId } = removal;
  const [beyond] = await db
    .selectFrom('responseTags')
    .select('responseId')
    .where('tagId', '=', id)
    .limit(1)
    .offset(SLICE_ROWS)
    .execute();
  if (beyond !== undefined) {
    await inSlices((rowsMax) =>
      db
        .transaction()
        .execute(async (trx) => ((await isPossible(trx, removal)) ? takeSome(trx, removal, rowsMax) : 0)),
    );
  }
  return db.transaction().execute(async (trx) => {
    // From here on no response gets the tag, and the other one cannot be deleted.
    await lockRows(trx, 'tags', intoId === null ? [id] : [id, intoId], 'delete');
    if (!(await isPossible(trx, removal))) return false;
    // Responses that got the tag meanwhile.
    while ((await takeSome(trx, removal, SLICE_ROWS)) === SLICE_ROWS);
    const { numDeletedRows } = await trx.deleteFrom('tags').where('id', '=', id).executeTakeFirst();
    return numDeletedRows > 0n;
  });
}

async function isPossible(trx: Database, { id, intoId }: Removal): Promise<boolean> {
  if (intoId === null) return true;
  const tags = await trx.selectFrom('tags').select('workspaceId').where('id', 'in', [id, intoId]).execute();
  const [one, other] = tags;
  return other !== undefined && one?.workspaceId === other.workspaceId;
}

/** Removes the tag from a few responses and gives them the other one. @returns their number */
async function takeSome(trx: Database, { id, intoId }: Removal, rowsMax: number): Promise<number> {
  const some = trx
    .selectFrom('responseTags')
    .select('responseId')
    .where('tagId', '=', id)
    .orderBy('responseId')
    .limit(rowsMax);
  // A response that loses the tag at this moment does not get the other one either.
  const rows = await (hasManyWriters(trx) ? some.forUpdate() : some).execute();
  const responseIds = rows.map(({ responseId }) => responseId);
  if (responseIds.length === 0) return 0;
  if (intoId !== null) {
    await trx
      .insertInto('responseTags')
      .values(responseIds.map((responseId) => ({ responseId, tagId: intoId })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  await trx
    .deleteFrom('responseTags')
    .where('tagId', '=', id)
    .where('responseId', 'in', responseIds)
    .execute();
  return responseIds.length;
}
