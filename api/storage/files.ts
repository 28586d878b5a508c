/**
 * What the database knows of uploaded files: a row for every key that was granted, written before the grant is given
 * away. So every object that exists, wherever it lives, has a row. The rows have no foreign keys: they must outlive
 * their owner until the object is gone. Writes go to `files` only.
 */
import type { Kysely, Selectable } from 'kysely';
import type { Database, FileTable, Timestamp } from '#api/db/schema.ts';
import { isId } from '#api/ids.ts';
import type { FileLocation } from './key.ts';
import { keyOf, locationOf } from './key.ts';

export type File = Selectable<FileTable>;

/** Keys in one statement, far below what databases allow for parameters. */
const KEYS_MAX = 500;

export async function insertFile(
  db: Kysely<Database>,
  {
    location,
    surveyId,
    createdAt,
  }: { location: FileLocation; surveyId: string | null; createdAt: Timestamp },
): Promise<void> {
  await db
    .insertInto('files')
    .values({
      key: keyOf(location),
      workspaceId: location.workspaceId,
      access: location.access,
      surveyId,
      responseId: null,
      size: null,
      storedAt: null,
      createdAt,
    })
    .execute();
}

/** The object is there. */
export async function markStored(
  db: Kysely<Database>,
  key: string,
  size: number,
  now: Timestamp,
): Promise<void> {
  await db.updateTable('files').set({ size, storedAt: now }).where('key', '=', key).execute();
}

export async function deleteFile(db: Kysely<Database>, key: string): Promise<void> {
  await db.deleteFrom('files').where('key', '=', key).execute();
}

/** A response, as far as its files are concerned. */
export interface Answered {
  readonly id: string;
  readonly workspaceId: string;
  readonly surveyId: string;
  /** Answers by question id. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Gives the private files that a response names as answers to it, unless another response was first: from now on they
 * go when it goes. Files that anybody may read, such as pictures of a survey, never belong to a response.
 */
export async function claimFiles(
  db: Kysely<Database>,
  { id, workspaceId, surveyId, data }: Answered,
): Promise<void> {
  const keys = privateKeysIn(data, workspaceId).slice(0, KEYS_MAX);
  if (keys.length === 0) return;
  await db
    .updateTable('files')
    .set({ responseId: id })
    .where('key', 'in', keys)
    .where('responseId', 'is', null)
    .where('surveyId', '=', surveyId)
    .execute();
}

/** The keys of the workspace's private files among the answers, which are paths or addresses. */
function privateKeysIn(data: Answered['data'], workspaceId: string): string[] {
  return Object.values(data)
    .flatMap((answer): readonly unknown[] => (Array.isArray(answer) ? answer : [answer]))
    .flatMap((text) => (typeof text === 'string' ? (privateKeyIn(text, workspaceId) ?? []) : []));
}

const ROOT = '/storage/';
/** A key has at most 1,024 bytes, each of which may be percent-encoded, and stands behind the address of a host. */
const ADDRESS_LENGTH_MAX = 4_096;

/** `…/storage/{id}/private/{name}`, the name percent-encoded; null for anything else */
function privateKeyIn(text: string, workspaceId: string): string | null {
  const start = text.length <= ADDRESS_LENGTH_MAX ? text.indexOf(ROOT) : -1;
  if (start < 0) return null;
  const [id = '', access, ...rest] = text.slice(start + ROOT.length).split('/');
  const encoded = rest.join('/');
  if (!isId(id) || access !== 'private' || encoded === '' || /[?#\s]/.test(encoded)) return null;
  const location = locationOf(workspaceId, access, decodedPath(encoded));
  return location === null ? null : keyOf(location);
}

function decodedPath(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    // Not percent-encoded by us, so not one of our files; it is looked for as it is and not found.
    return encoded;
  }
}

export type Owner = { readonly responseId: string } | { readonly surveyId: string };

/** Oldest first. */
export function listFilesOf(db: Kysely<Database>, owner: Owner, limit: number): Promise<File[]> {
  const query = db.selectFrom('files').selectAll().orderBy('createdAt').orderBy('key').limit(limit);
  return 'responseId' in owner
    ? query.where('responseId', '=', owner.responseId).execute()
    : query.where('surveyId', '=', owner.surveyId).execute();
}

/** Files whose response, survey or workspace is no longer there, whichever way it went. */
export function listOrphans(db: Kysely<Database>, limit: number): Promise<File[]> {
  return db
    .selectFrom('files')
    .selectAll()
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

/** Grants of which nobody has told us what became of them; the oldest first. */
export function listUnsettled(db: Kysely<Database>, before: Timestamp, limit: number): Promise<File[]> {
  return db
    .selectFrom('files')
    .selectAll()
    .where('storedAt', 'is', null)
    .where('createdAt', '<', before)
    .orderBy('createdAt')
    .orderBy('key')
    .limit(limit)
    .execute();
}
