/**
 * The list of surveys on v3: those of one workspace, the oldest first, ties by id, in pages with a cursor.
 *
 * Callers: API keys and sessions with the right to read the workspace. An unknown one is 403 as well.
 */
import { type SqlBool, sql } from 'kysely';
import { type Static, Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { may } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { forbidden, NO_ACCESS } from '#api/errors.ts';
import { Id, TextOrNull } from '#api/values/schemas.ts';

const LIMIT_DEFAULT = 50;
/** The time and the id of the last row of a page. */
const CURSOR_PATTERN = '^\\d{4}-\\d\\d-\\d\\dT[\\d:.]{12}Z_[0-9a-z]{1,64}$';

const Query = Type.Object(
  {
    workspaceId: Id,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(Type.String({ pattern: CURSOR_PATTERN, text: 'is not the nextCursor of a page' })),
  },
  { additionalProperties: false },
);
const Survey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  workspaceId: Type.String(),
  type: Type.String(),
  status: Type.String(),
  publishOn: TextOrNull,
  createdAt: Type.String(),
  updatedAt: Type.String(),
});
const Meta = Type.Object({ limit: Type.Integer(), nextCursor: TextOrNull });
const Page = Type.Object({ data: Type.Array(Survey), meta: Meta });

export const v3SurveyRoutes: Routes = async (app, { context }) => {
  app.get<{ Querystring: Static<typeof Query> }>(
    '/api/v3/surveys',
    { schema: { querystring: Query, response: { 200: Page } } },
    async (request) => {
      const { cursor, limit = LIMIT_DEFAULT, workspaceId } = request.query;
      // Nobody has a right in a workspace that does not exist.
      if (!may(principalOf(request), workspaceId, 'read')) throw forbidden(NO_ACCESS);
      const rows = context.db
        .selectFrom('surveys')
        .select(['id', 'name', 'workspaceId', 'type', 'status', 'publishOn', 'createdAt', 'updatedAt'])
        .where('workspaceId', '=', workspaceId);
      const [time, lastId] = cursor?.split('_') ?? [];
      const isAfter = sql<SqlBool>`("createdAt", "id") > (${time}, ${lastId})`;
      const found = await (cursor === undefined ? rows : rows.where(isAfter))
        .orderBy('createdAt')
        .orderBy('id')
        .limit(limit + 1)
        .execute();
      const data = found.slice(0, limit);
      const last = found.length > limit ? data.at(-1) : undefined;
      const nextCursor = last === undefined ? null : `${last.createdAt}_${last.id}`;
      return { data, meta: { limit, nextCursor } };
    },
  );
};
