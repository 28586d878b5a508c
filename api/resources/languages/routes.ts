/**
 * Languages of a workspace on v1. Formbricks has no such routes; the languages of a survey must exist in
 * its workspace.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { inWorkspace, newRow } from '#api/resources/workspaces/table.ts';
import { Nullable, rowFields, scopeFields } from '#api/values/schemas.ts';
import { addLanguage, languages } from './store.ts';

const NewLanguage = Type.Object({
  ...scopeFields,
  code: Type.String({
    pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$',
    text: 'Give a language code such as de or pt-BR',
  }),
  alias: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
});
const LanguageReply = Type.Object({
  ...rowFields,
  code: Type.String(),
  alias: Nullable(Type.String()),
});

export const languageRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const resource = v1Resource(app, context, {
    url: '/api/v1/management/languages',
    param: 'languageId',
    type: 'Language',
    rows: languages,
    reply: LanguageReply,
    toReplies: (found) => found,
  });

  resource.list();

  resource.create(NewLanguage, async (body, { id }) => {
    const { code, alias = null } = body;
    const made = { ...newRow(context, id), code, alias };
    await db.transaction().execute((trx) => addLanguage(trx, made));
    return made;
  });

  resource.read();

  resource.remove(({ id, workspaceId }) => inWorkspace(db, workspaceId, (trx) => languages.remove(trx, id)));
};
