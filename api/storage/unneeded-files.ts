/** Queries for files that may have to be deleted. */
import type { Database, Timestamp } from '#api/db/schema.ts';
import type { File } from './files.ts';

export type Owner =
  | { readonly responseId: string }
  | { readonly surveyId: string }
  | { readonly workspaceId: string };

function oldestFiles(db: Database, limit: number) {
  return db.selectFrom('files').selectAll().orderBy('createdAt').orderBy('key').limit(limit);
}

/** Files that exist or may exist, oldest first. */
export function listFilesOf(db: Database, owner: Owner, limit: number): Promise<File[]> {
  const query = oldestFiles(db, limit).where((where) =>
    where.or([where('removedAt', 'is', null), where('countedBytes', '>', 0)]),
  );
  if ('responseId' in owner) return query.where('responseId', '=', owner.responseId).execute();
  if ('surveyId' in owner) return query.where('surveyId', '=', owner.surveyId).execute();
  return query.where('workspaceId', '=', owner.workspaceId).execute();
}

/** Files whose response, survey or workspace was deleted, in any way. */
export function listOrphans(db: Database, limit: number): Promise<File[]> {
  return db
    .selectFrom('files')
    .selectAll()
    .where('removedAt', 'is', null)
    .where((where) =>
      where.or([
        where.and([
          where('responseId', 'is not', null),
          where.not(
            where.exists(
              where
                .selectFrom('responses')
                .select('responses.id')
                .whereRef('responses.id', '=', 'files.responseId'),
            ),
          ),
        ]),
        where.and([
          where('surveyId', 'is not', null),
          where.not(
            where.exists(
              where.selectFrom('surveys').select('surveys.id').whereRef('surveys.id', '=', 'files.surveyId'),
            ),
          ),
        ]),
        where.not(
          where.exists(
            where
              .selectFrom('workspaces')
              .select('workspaces.id')
              .whereRef('workspaces.id', '=', 'files.workspaceId'),
          ),
        ),
      ]),
    )
    .orderBy('key')
    .limit(limit)
    .execute();
}

/** Selects stored files that nothing names, with grants before the given time, oldest first. */
export function unclaimedFiles(db: Database, before: Timestamp, limit: number) {
  return oldestFiles(db, limit)
    .where('claimedAt', 'is', null)
    .where('storedAt', 'is not', null)
    .where('removedAt', 'is', null)
    .where('createdAt', '<', before);
}

/** Selects deleted files whose grant is old enough to delete the row, or whose object may still exist. */
export function removedFiles(db: Database, before: Timestamp, limit: number) {
  return oldestFiles(db, limit)
    .where('removedAt', 'is not', null)
    .where((where) => where.or([where('createdAt', '<', before), where('countedBytes', '>', 0)]));
}

/**
 * Grants without a known result, oldest first.
 *
 * @param times `reserved`: before this time, if they still reserve bytes; `ended`: before this time, in any case
 */
export function unsettledFiles(
  db: Database,
  times: { readonly reserved: Timestamp; readonly ended: Timestamp },
  limit: number,
) {
  return oldestFiles(db, limit)
    .where('storedAt', 'is', null)
    .where('removedAt', 'is', null)
    .where('createdAt', '<', times.reserved)
    .where((where) => where.or([where('countedBytes', '>', 0), where('createdAt', '<', times.ended)]));
}
