/** Queries for files that should not be there, or of which too little is known. */
import type { Kysely } from 'kysely';
import type { Database, Timestamp } from '#api/db/schema.ts';
import type { File } from './files.ts';

export type Owner = { readonly responseId: string } | { readonly surveyId: string };

/** Those that are there, or may be. Oldest first. */
export function listFilesOf(db: Kysely<Database>, owner: Owner, limit: number): Promise<File[]> {
  const query = db
    .selectFrom('files')
    .selectAll()
    .where((where) => where.or([where('removedAt', 'is', null), where('countedBytes', '>', 0)]))
    .orderBy('createdAt')
    .orderBy('key')
    .limit(limit);
  return 'responseId' in owner
    ? query.where('responseId', '=', owner.responseId).execute()
    : query.where('surveyId', '=', owner.surveyId).execute();
}

/** Files whose response, survey or workspace is no longer there, whichever way it went. */
export function listOrphans(db: Kysely<Database>, limit: number): Promise<File[]> {
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

/** Stored files that nobody named, of grants before that time; the oldest first. */
export function unclaimedFiles(db: Kysely<Database>, before: Timestamp, limit: number) {
  return db
    .selectFrom('files')
    .selectAll()
    .where('claimedAt', 'is', null)
    .where('storedAt', 'is not', null)
    .where('removedAt', 'is', null)
    .where('createdAt', '<', before)
    .orderBy('createdAt')
    .orderBy('key')
    .limit(limit);
}

/** Deleted files whose grant is old enough for the row to go, or whose object may still be there. */
export function removedFiles(db: Kysely<Database>, before: Timestamp, limit: number) {
  return db
    .selectFrom('files')
    .selectAll()
    .where('removedAt', 'is not', null)
    .where((where) => where.or([where('createdAt', '<', before), where('countedBytes', '>', 0)]))
    .orderBy('createdAt')
    .orderBy('key')
    .limit(limit);
}

/**
 * Grants of which nobody has told us what became of them; the oldest first.
 *
 * @param times `reserved`: older ones that still take room; `ended`: older ones whether they do or not
 */
export function unsettledFiles(
  db: Kysely<Database>,
  times: { readonly reserved: Timestamp; readonly ended: Timestamp },
  limit: number,
) {
  return db
    .selectFrom('files')
    .selectAll()
    .where('storedAt', 'is', null)
    .where('removedAt', 'is', null)
    .where('createdAt', '<', times.reserved)
    .where((where) => where.or([where('countedBytes', '>', 0), where('createdAt', '<', times.ended)]))
    .orderBy('createdAt')
    .orderBy('key')
    .limit(limit);
}
