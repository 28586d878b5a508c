/**
 * The notes of a response on v1. Formbricks no longer has such routes.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import type { Principal } from '#api/auth/principal.ts';
import { NOTE_LENGTH_MAX, RESPONSE_NOTES_MAX } from '#api/content-limits.ts';
import type { Routes } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { existing, forbidden, notFound } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { creatorOfKey } from '#api/resources/api-keys/store.ts';
import { NoteReply } from '#api/resources/responses/schema.ts';
import { findResponse, listNotesOf, type Note } from '#api/resources/responses/store.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { countNotes, deleteNote, findNote, insertNote, updateNote } from './store.ts';

const url = '/api/v1/management/responses/:responseId/notes';
const Params = Type.Object({ responseId: Type.String() });
const NoteParams = Type.Object({ responseId: Type.String(), noteId: Type.String() });
const Text = Type.String({
  maxLength: NOTE_LENGTH_MAX,
  pattern: '\\S',
  text: `Give a text of 1 to ${NOTE_LENGTH_MAX} characters`,
});
const many = { 200: Type.Object({ data: Type.Array(NoteReply) }) };
const one = { 200: Type.Object({ data: NoteReply }) };

export const noteRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const responses = workspaceRow({ db, type: 'Response', param: 'responseId', find: findResponse });

  app.get(url, { schema: { params: Params, response: many }, onRequest: responses.load }, async (request) => {
    const { id } = responses.of(request);
    return { data: (await listNotesOf(db, [id])).get(id) ?? [] };
  });

  app.post(
    url,
    {
      schema: { params: Params, body: Type.Object({ text: Text }), response: one },
      config: { refuses: ['forbidden'] },
      onRequest: responses.load,
    },
    async (request) => {
      const { id: responseId } = responses.of(request);
      const id = newId(random);
      const note = await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'responses', responseId);
        if ((await findResponse(trx, responseId)) === null) throw notFound('Response', responseId);
        if ((await countNotes(trx, responseId)) >= RESPONSE_NOTES_MAX) {
          throw forbidden(`A response can have ${RESPONSE_NOTES_MAX} notes; delete one first`);
        }
        await insertNote(trx, {
          id,
          responseId,
          userId: await authorOf(trx, principalOf(request)),
          text: request.body.text,
          createdAt: toTimestamp(clock()),
        });
        return noteIn(trx, responseId, id);
      });
      return { data: note };
    },
  );

  app.put(
    `${url}/:noteId`,
    {
      schema: {
        params: NoteParams,
        body: Type.Object({ text: Type.Optional(Text), isResolved: Type.Optional(Type.Boolean()) }),
        response: one,
      },
      onRequest: responses.load,
    },
    async (request) => {
      const { id: responseId } = responses.of(request);
      const note = await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'responses', responseId);
        const stored = await noteIn(trx, responseId, request.params.noteId);
        const { text = stored.text, isResolved = stored.isResolved } = request.body;
        const isEdited = stored.isEdited || text !== stored.text;
        const changed = { ...stored, text, isResolved, isEdited, updatedAt: toTimestamp(clock()) };
        await updateNote(trx, changed);
        return changed;
      });
      return { data: note };
    },
  );

  app.delete(
    `${url}/:noteId`,
    { schema: { params: NoteParams, response: one }, onRequest: responses.load },
    async (request) => {
      const { id: responseId } = responses.of(request);
      const note = await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'responses', responseId);
        const stored = await noteIn(trx, responseId, request.params.noteId);
        await deleteNote(trx, stored.id);
        return stored;
      });
      return { data: note };
    },
  );
};

async function noteIn(trx: Database, responseId: string, id: string): Promise<Note> {
  return existing(await findNote(trx, responseId, id), 'Note', id);
}

/** Returns the author of a note. For a key it is the person who created the key. */
async function authorOf(db: Database, principal: Principal): Promise<string | null> {
  if (principal.kind === 'session') return principal.userId;
  return creatorOfKey(db, principal.apiKeyId);
}
