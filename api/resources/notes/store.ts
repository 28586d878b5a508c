/**
 * Notes of responses. This file writes the table `responseNotes`; responses/store.ts reads it together with
 * responses.
 */
import { countRows } from '#api/db/count.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import type { Note } from '#api/resources/responses/store.ts';
import { listNotesOf } from '#api/resources/responses/store.ts';

interface NewNote {
  readonly id: string;
  readonly responseId: string;
  /** Id of the author; null if unknown. */
  readonly userId: string | null;
  readonly text: string;
  readonly createdAt: Timestamp;
}

export function countNotes(db: Database, responseId: string): Promise<number> {
  return countRows(db.selectFrom('responseNotes').where('responseId', '=', responseId));
}

export async function findNote(db: Database, responseId: string, id: string): Promise<Note | null> {
  const notes = await listNotesOf(db, [responseId]);
  return notes.get(responseId)?.find((note) => note.id === id) ?? null;
}

export async function insertNote(db: Database, note: NewNote): Promise<void> {
  await db
    .insertInto('responseNotes')
    .values({ ...note, updatedAt: note.createdAt, isResolved: 0, isEdited: 0 })
    .execute();
}

export async function updateNote(
  db: Database,
  { id, isEdited, isResolved, text, updatedAt }: Note,
): Promise<void> {
  await db
    .updateTable('responseNotes')
    .set({ text, isResolved: isResolved ? 1 : 0, isEdited: isEdited ? 1 : 0, updatedAt })
    .where('id', '=', id)
    .execute();
}

export async function deleteNote(db: Database, id: string): Promise<void> {
  await db.deleteFrom('responseNotes').where('id', '=', id).execute();
}
