/** Displays: a survey was shown. A response stores its display. */
import type { Database, Decoded, DisplayTable, Timestamp } from '#api/db/schema.ts';
import { isId } from '#api/values/ids.ts';

/** A display with the workspace of its survey. */
export type Display = Decoded<DisplayTable, { workspaceId: string }>;

export async function findDisplay(db: Database, id: string): Promise<Display | null> {
  if (!isId(id)) return null;
  const row = await db
    .selectFrom('displays')
    .innerJoin('surveys', 'surveys.id', 'displays.surveyId')
    .selectAll('displays')
    .select('surveys.workspaceId')
    .where('displays.id', '=', id)
    .executeTakeFirst();
  return row ?? null;
}

export async function insertDisplay(db: Database, display: Display): Promise<void> {
  const { workspaceId: _, ...row } = display;
  await db.insertInto('displays').values(row).execute();
}

/** @returns false if it was gone */
export async function setDisplayContact(
  db: Database,
  id: string,
  contactId: string,
  now: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('displays')
    .set({ contactId, updatedAt: now })
    .where('id', '=', id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function deleteDisplay(db: Database, id: string): Promise<void> {
  await db.deleteFrom('displays').where('id', '=', id).execute();
}
