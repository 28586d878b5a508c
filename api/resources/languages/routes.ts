/**
 * Languages of a workspace on v1. Formbricks has no such routes; the languages of a survey must exist in
 * its workspace.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { conflict } from '#api/errors.ts';
import { workspaceResource } from '#api/resources/workspaces/resource.ts';
import { inWorkspace, newRow } from '#api/resources/workspaces/table.ts';
import { Nullable, rowFields, scopeFields } from '#api/values/schemas.ts';
import { languages } from './store.ts';

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
  const resource = workspaceResource(app, context, {
    version: 'v1',
    url: '/api/v1/management/languages',
    param: 'languageId',
    type: 'Language',
    rows: languages,
    reply: LanguageReply,
    toReplies: (found) => found,
  });

  resource.list();

  resource.create(NewLanguage, ({ code, alias = null }, { id }) => {
    const taken = conflict(`Language with code ${code} already exists`);
    return unlessTaken(['languages.workspaceId', 'languages.code'], taken, () =>
      languages.create(db, { ...newRow(context, id), code, alias }),
    );
  });

  resource.read();

  resource.remove(({ id, workspaceId }) => inWorkspace(db, workspaceId, (trx) => languages.remove(trx, id)));
};
