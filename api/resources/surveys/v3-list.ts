/** The survey list of v3: filters, three orders, and pages with a cursor. */
import { type SelectQueryBuilder, sql } from 'kysely';
import { countRows } from '#api/db/count.ts';
import type { Database, Tables } from '#api/db/schema.ts';
import { type Cursor, isAfter, pageOf } from '#api/http/cursor-pagination.ts';
import { responseCountsOf } from './response-counts.ts';

export const surveyStatuses = [
  'draft',
  'scheduled',
  'inProgress',
  'paused',
  'completed',
  // No survey has it, but clients filter by it.
  'archived',
] as const;
type SurveyStatus = (typeof surveyStatuses)[number];

interface SurveyFilter {
  readonly workspaceId: string;
  /** Part of the name, ignoring case; null for any name. */
  readonly nameContains: string | null;
  /** Statuses to list; null for all. */
  readonly statuses: readonly SurveyStatus[] | null;
  /** Types to list; null for all. */
  readonly types: readonly ('link' | 'app')[] | null;
}

type SortBy = 'createdAt' | 'updatedAt' | 'name';

type Surveys<O> = SelectQueryBuilder<Tables, 'surveys', O>;

/** Times newest first, names from A to Z, ties by id. */
export async function listSurveyItems(
  db: Database,
  filter: SurveyFilter,
  page: { readonly sortBy: SortBy; readonly limit: number; readonly cursor: Cursor | null },
) {
  const { sortBy, limit, cursor } = page;
  const direction = sortBy === 'name' ? 'asc' : 'desc';
  const all = matching(db, filter).select([
    'id',
    'name',
    'workspaceId',
    'type',
    'status',
    'createdAt',
    'updatedAt',
    'createdBy',
    'publishOn',
  ]);
  const found = await (cursor === null ? all : all.where(isAfter(cursor, direction)))
    .orderBy(sortBy, direction)
    .orderBy('id', direction)
    .limit(limit + 1)
    .execute();
  const { rows, nextCursor } = pageOf(found, limit, sortBy, (row) => row[sortBy]);
  const ids = rows.map(({ id }) => id);
  const counts = await responseCountsOf(db, ids);
  const names = await namesOf(
    db,
    filter.workspaceId,
    rows.flatMap(({ createdBy }) => createdBy ?? []),
  );
  return {
    nextCursor,
    items: rows.map(({ createdBy, ...row }) => {
      const creator = createdBy === null ? undefined : names.get(createdBy);
      return {
        ...row,
        archivedAt: null,
        responseCount: counts.get(row.id)?.responses ?? 0,
        completedResponseCount: counts.get(row.id)?.finished ?? 0,
        creator: creator === undefined ? null : { name: creator },
      };
    }),
  };
}

export function countSurveys(db: Database, filter: SurveyFilter): Promise<number> {
  return countRows(matching(db, filter));
}

function matching(db: Database, filter: SurveyFilter): Surveys<object> {
  const { nameContains, statuses, types } = filter;
  let query: Surveys<object> = db.selectFrom('surveys').where('workspaceId', '=', filter.workspaceId);
  if (types !== null) query = query.where('type', 'in', types);
  if (nameContains !== null) {
    const pattern = `%${nameContains.replaceAll(/[\\%_]/g, '\\$&')}%`;
    query = query.where(sql<boolean>`lower("name") like lower(${pattern}) escape '\\'`);
  }
  return statuses === null ? query : query.where(sql.ref<string>('status'), 'in', statuses);
}

/**
 * Finds only members of the workspace's organization, because a program may create a survey with any user id as
 * `createdBy`.
 */
async function namesOf(
  db: Database,
  workspaceId: string,
  userIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (userIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('workspaces')
    .innerJoin('memberships', 'memberships.organizationId', 'workspaces.organizationId')
    .innerJoin('users', 'users.id', 'memberships.userId')
    .select(['users.id', 'users.name'])
    .where('workspaces.id', '=', workspaceId)
    .where('users.id', 'in', userIds)
    .execute();
  return new Map(rows.map(({ id, name }) => [id, name]));
}
