/**
 * Lists surveys on v3.
 *
 * Callers: API keys and sessions with the right to read the workspace.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { invalidFields } from '#api/errors.ts';
import { readCursor } from '#api/http/cursor-pagination.ts';
import { v3Workspace } from '#api/resources/workspaces/scope.ts';
import { Id, OneOf, TextOrNull } from '#api/values/schemas.ts';
import { countSurveys, listSurveyItems, surveyStatuses } from './v3-list.ts';

const LIMIT_DEFAULT = 20;
const LIST_ITEMS_MAX = 50;

/** `a=x&a=y` and `a=x,y` mean the same. */
const List = Type.Unsafe<string | string[]>({
  anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, maxItems: LIST_ITEMS_MAX }],
});

const ListQuery = Type.Object(
  {
    workspaceId: Id,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(Type.String()),
    includeTotalCount: Type.Optional(OneOf(['true', 'false'] as const)),
    'filter[name][contains]': Type.Optional(Type.String({ maxLength: 512 })),
    'filter[status][in]': Type.Optional(List),
    'filter[type][in]': Type.Optional(List),
    sortBy: Type.Optional(OneOf(['createdAt', 'updatedAt', 'name', 'relevance'] as const)),
  },
  { additionalProperties: false },
);

const Item = Type.Object({
  id: Type.String(),
  name: Type.String(),
  workspaceId: Type.String(),
  type: Type.String(),
  status: Type.String(),
  publishOn: TextOrNull,
  /** Clients expect it. Nothing archives surveys. */
  archivedAt: TextOrNull,
  createdAt: Type.String(),
  updatedAt: Type.String(),
  responseCount: Type.Integer(),
  completedResponseCount: Type.Integer(),
  creator: Type.Union([Type.Object({ name: Type.String() }), Type.Null()]),
});
const Meta = Type.Object({
  limit: Type.Integer(),
  nextCursor: TextOrNull,
  totalCount: Type.Union([Type.Integer(), Type.Null()]),
  hasArchived: Type.Union([Type.Boolean(), Type.Null()]),
});

export const v3SurveyRoutes: Routes = async (app, { context }) => {
  const { db } = context;

  app.get(
    '/api/v3/surveys',
    {
      schema: {
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(Item), meta: Meta }) },
      },
    },
    async (request) => {
      const { query } = request;
      const { limit = LIMIT_DEFAULT } = query;
      // Without a search engine, the latest change is the most relevant.
      const sortBy = query.sortBy === undefined || query.sortBy === 'relevance' ? 'updatedAt' : query.sortBy;
      const cursor = readCursor(query.cursor, sortBy);
      const statuses = valuesOf('filter[status][in]', query['filter[status][in]'], surveyStatuses);
      const types = valuesOf('filter[type][in]', query['filter[type][in]'], ['link', 'app'] as const);
      const nameContains = query['filter[name][contains]'] || null;
      const workspace = await v3Workspace(context, request, query.workspaceId, 'read');
      const filter = { workspaceId: workspace.id, nameContains, statuses, types };
      const { items, nextCursor } = await listSurveyItems(db, filter, { sortBy, limit, cursor });
      const isCounted = query.includeTotalCount !== 'false';
      return {
        data: items,
        meta: {
          limit,
          nextCursor,
          totalCount: isCounted ? await countSurveys(db, filter) : null,
          hasArchived: isCounted ? false : null,
        },
      };
    },
  );
};

/** @returns null if the parameter is absent @throws ApiError invalid_fields for an unknown value */
function valuesOf<T extends string>(
  name: string,
  given: string | readonly string[] | undefined,
  known: readonly T[],
): readonly T[] | null {
  if (given === undefined) return null;
  const texts = (typeof given === 'string' ? [given] : given)
    .flatMap((text) => text.split(','))
    .map((text) => text.trim());
  const values = new Set<T>();
  for (const text of texts) {
    const value = known.find((one) => one === text);
    if (value === undefined) throw invalidFields({ [name]: `must be one of ${known.join(', ')}` });
    values.add(value);
  }
  return [...values];
}
