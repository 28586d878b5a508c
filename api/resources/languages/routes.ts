/**
 * Languages on the management API: a route of ours, because the languages of a survey must exist in its workspace and
 * nothing else makes them. Needs a key; rights go by method.
 */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { lockRow } from '#api/db/locks.ts';
import { conflict } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { newId } from '#api/ids.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { type Language, withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { Nullable, scopeFields } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { addLanguage } from './add.ts';
import { deleteLanguage, findLanguage, isLanguageUsed, listLanguagesOf } from './store.ts';

const LIST_MAX = 5_000;

const Params = Type.Object({ languageId: Type.String() });
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
const one = { 200: Type.Object({ data: LanguageReply }) };

export const languageRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const url = '/api/v1/management/languages';
  const oneUrl = `${url}/:languageId`;
  const languages = workspaceRow({ db, type: 'Language', param: 'languageId', find: findLanguage });

  app.get(
    url,
    {
      schema: { querystring: ListQuery, response: { 200: Type.Object({ data: Type.Array(LanguageReply) }) } },
    },
    async (request, reply) => {
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listLanguagesOf(db, workspaceIds, page),
      );
      return { data: [...(await withEnvironmentIds(db, found))] };
    },
  );

  app.post(
    url,
    {
      schema: { body: NewLanguage, response: one },
      config: { refuses: ['forbidden', 'conflict'] },
      preValidation: loadBodyWorkspace(context),
    },
    async (request) => {
      const { id: workspaceId, environmentId } = workspaceOf(request);
      const { code, alias = null } = request.body;
      const now = toTimestamp(clock());
      const made: Language = { id: newId(random), workspaceId, code, alias, createdAt: now, updatedAt: now };
      try {
        await db.transaction().execute((trx) => addLanguage(trx, made));
      } catch (error) {
        if (isUniqueViolation(error, 'languages.workspaceId', 'languages.code'))
          throw conflict(`Language with code ${code} already exists`);
        throw error;
      }
      return { data: { ...made, environmentId } };
    },
  );

  app.get(
    oneUrl,
    { schema: { params: Params, response: one }, onRequest: languages.load },
    async (request) => ({ data: languages.of(request) }),
  );

  app.delete(
    oneUrl,
    {
      schema: { params: Params, response: one },
      config: { refuses: ['conflict'] },
      onRequest: languages.load,
    },
    async (request) => {
      const stored = languages.of(request);
      await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'workspaces', stored.workspaceId);
        if (await isLanguageUsed(trx, stored.id)) {
          throw conflict('The language is used by a survey; take it out of the survey first');
        }
        await deleteLanguage(trx, stored.id);
      });
      return { data: stored };
    },
  );
};
