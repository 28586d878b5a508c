/**
 * Deletes a tag, or merges it into another one. Each is a single transaction. If many responses have the tag, they
 * lose it or get the other one a few at a time before, so that other writers need not wait. After an interruption the
 * tag has fewer responses, and the same request finishes the work. No response ever lacks both tags.
 */
import type { Kysely } from 'kysely';
import { hasManyWriters, lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { inSlices, SLICE_ROWS } from '#api/db/slices.ts';

/** Processes a few responses with the tag. @returns how many there were */
type Slice = (trx: Kysely<Database>, rowsMax: number) => Promise<number>;

/** @returns false when the tag was gone */
export function deleteTag(db: Kysely<Database>, id: string): Promise<boolean> {
  const drop: Slice = async (trx, rowsMax) => {
    const responseIds = await responsesWith(trx, id, rowsMax);
    await take(trx, id, responseIds);
    return responseIds.length;
  };
  return removeTag(db, id, drop, async () => true);
}

/**
 * Gives every response that has the tag the other one, and deletes the tag.
 *
 * @returns false when either is gone, or they are in different workspaces
 */
export function mergeTag(db: Kysely<Database>, id: string, intoId: string): Promise<boolean> {
  const isPossible = async (trx: Kysely<Database>): Promise<boolean> => {
    const tags = await trx.selectFrom('tags').select('workspaceId').where('id', 'in', [id, intoId]).execute();
    const [one, other] = tags;
    return other !== undefined && one?.workspaceId === other.workspaceId;
  };
  const move: Slice = async (trx, rowsMax) => {
    if (!(await isPossible(trx))) return 0;
    const responseIds = await responsesWith(trx, id, rowsMax);
    if (responseIds.length > 0) {
      await trx
        .insertInto('responseTags')
        .values(responseIds.map((responseId) => ({ responseId, tagId: intoId })))
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    }
    await take(trx, id, responseIds);
    return responseIds.length;
  };
  return removeTag(db, id, move, isPossible);
}

async function removeTag(
  db: Kysely<Database>,
  id: string,
  slice: Slice,
  isPossible: (trx: Kysely<Database>) => Promise<boolean>,
): Promise<boolean> {
  const [beyond] = await db
    .selectFrom('responseTags')
    .select('responseId')
    .where('tagId', '=', id)
    .limit(1)
    .offset(SLICE_ROWS)
    .execute();
  if (beyond !== undefined) {
    await inSlices((rowsMax) => db.transaction().execute((trx) => slice(trx, rowsMax)));
  }
  return db.transaction().execute(async (trx) => {
    // From here on no response gets the tag.
    await lockRow(trx, 'tags', id, 'delete');
    if (!(await isPossible(trx))) return false;
    // Responses that got the tag meanwhile.
    while ((await slice(trx, SLICE_ROWS)) === SLICE_ROWS);
    const { numDeletedRows } = await trx.deleteFrom('tags').where('id', '=', id).executeTakeFirst();
    return numDeletedRows > 0n;
  });
}

async function responsesWith(
  trx: Kysely<Database>,
  tagId: string,
  rowsMax: number,
): Promise<readonly string[]> {
  const some = trx
    .selectFrom('responseTags')
    .select('responseId')
    .where('tagId', '=', tagId)
    .orderBy('responseId')
    .limit(rowsMax);
  // A response that loses the tag at this moment does not get the other one either.
  const rows = await (hasManyWriters(trx) ? some.forUpdate() : some).execute();
  return rows.map(({ responseId }) => responseId);
}

async function take(trx: Kysely<Database>, tagId: string, responseIds: readonly string[]): Promise<void> {
  if (responseIds.length === 0) return;
  await trx
    .deleteFrom('responseTags')
    .where('tagId', '=', tagId)
    .where('responseId', 'in', responseIds)
    .execute();
}
