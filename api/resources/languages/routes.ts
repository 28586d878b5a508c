/**
 * Languages of a workspace on v1. Formbricks has no such routes; the languages of a survey must exist in
 * its workspace.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import { conflict } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import type { Language } from '#api/resources/workspaces/store.ts';
import { Nullable, scopeFields } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { addLanguage, deleteLanguage, findLanguage, isLanguageUsed, listLanguagesOf } from './store.ts';

const LIST_MAX = 5_000;

const NewLanguage = Type.Object({
  ...scopeFields,
  code: Type.String({
    pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$',
    text: 'Give a language code such as de or pt-BR',
  }),
  alias: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
});
const LanguageReply = Type.Object({
  id: Type.String(),
  code: Type.String(),
  alias: Nullable(Type.String()),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});
export const languageRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const languages = v1Resource(app, context, {
    url: '/api/v1/management/languages',
    param: 'languageId',
    type: 'Language',
    find: findLanguage,
    reply: LanguageReply,
    toReplies: (found) => found,
  });

  languages.list(LIST_MAX, listLanguagesOf);

  languages.create({ body: NewLanguage, refuses: ['forbidden', 'conflict'] }, async (body, workspace) => {
    const { code, alias = null } = body;
    const now = toTimestamp(clock());
    const made: Language = {
      id: newId(random),
      workspaceId: workspace.id,
      code,
      alias,
      createdAt: now,
      updatedAt: now,
    };
    await db.transaction().execute((trx) => addLanguage(trx, made));
    return made;
  });

  languages.read();

  languages.remove({ refuses: ['conflict'] }, async ({ id, workspaceId }) => {
    await db.transaction().execute(async (trx) => {
      await lockRow(trx, 'workspaces', workspaceId);
      if (await isLanguageUsed(trx, id)) {
        throw conflict('The language is used by a survey; take it out of the survey first');
      }
      await deleteLanguage(trx, id);
    });
  });
};
