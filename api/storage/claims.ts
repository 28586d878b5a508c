/**
 * Keeps uploaded files that an answer or a survey names. A file that nothing names within a day is deleted
 * (removal.ts). Writing an answer or a survey claims its files in the same transaction. A claim is permanent. So a file
 * that was named once stays until it is deleted itself, or together with its response, survey or workspace.
 */
import type { Database, Timestamp } from '#api/db/schema.ts';
import { isId } from '#api/values/ids.ts';
import { percentDecoded } from '#api/values/percent-encoding.ts';
import { isAccess, keyOf, locationOf } from './key.ts';

/** Maximum number of keys in one statement, far below the databases' limits for parameters. */
const KEYS_MAX = 500;

/** The parts of a response that concern files. */
interface Answered {
  readonly id: string;
  readonly workspaceId: string;
  readonly surveyId: string;
  readonly updatedAt: Timestamp;
  /** Answers by question id. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Claims the files that a response names. Files that are answers to its survey then belong to the response, unless they
 * already belong to another one, and are deleted together with it. Public files, such as pictures of a survey, never
 * belong to a response.
 */
export async function claimFiles(
  db: Database,
  { id, workspaceId, surveyId, updatedAt, data }: Answered,
): Promise<void> {
  const keys = textsIn(data).flatMap((text) => keyIn(text, workspaceId) ?? []);
  for (const some of inParts(keys)) {
    await markClaimed(db, some, updatedAt);
    await db
      .updateTable('files')
      .set({ responseId: id })
      .where('key', 'in', some)
      .where('access', '=', 'private')
      .where('responseId', 'is', null)
      .where('surveyId', '=', surveyId)
      .execute();
  }
}

function textsIn(data: Answered['data']): readonly string[] {
  return Object.values(data)
    .flatMap((answer): readonly unknown[] => (Array.isArray(answer) ? answer : [answer]))
    .filter((text) => typeof text === 'string');
}

/** Claims files whose names are anywhere in a text, such as a survey's document with pictures in its questions. */
export async function claimFilesIn(
  db: Database,
  {
    workspaceId,
    text,
    now,
  }: { readonly workspaceId: string; readonly text: string; readonly now: Timestamp },
): Promise<void> {
  const keys = new Set<string>();
  for (const [, id = '', access = '', name = ''] of text.matchAll(FILE)) {
    // The id in the path may be the legacy environment id of this workspace, or the id of another workspace.
    for (const owner of new Set([id, workspaceId])) {
      const location = isAccess(access) ? locationOf(owner, access, percentDecoded(name)) : null;
      if (location !== null) keys.add(keyOf(location));
    }
  }
  for (const some of inParts([...keys])) await markClaimed(db, some, now);
}

/**
 * Finds the names of files in any text, such as HTML and CSS. Every name that the API makes ends in a UUID and an
 * extension. A part of a name has no slash, so no part of a text is searched twice.
 */
const FILE =
  /\/storage\/([0-9a-z]{1,64})\/(public|private)\/((?:surveys\/[0-9a-z]{1,64}\/elements\/[\w-]{1,255}\/)?[^"/\\<>?#]{1,2000}?--fid--[0-9a-f-]{36}\.[A-Za-z0-9]{1,20})/g;

async function markClaimed(db: Database, keys: readonly string[], now: Timestamp): Promise<void> {
  await db
    .updateTable('files')
    .set({ claimedAt: now })
    .where('key', 'in', keys)
    .where('claimedAt', 'is', null)
    .execute();
}

function* inParts(keys: readonly string[]): Generator<readonly string[]> {
  for (let start = 0; start < keys.length; start += KEYS_MAX) yield keys.slice(start, start + KEYS_MAX);
}

const ROOT = '/storage/';
/**
 * Maximum length of an address: a key has at most 1,024 bytes, each of which may be percent-encoded, after the address
 * of a host.
 */
const ADDRESS_LENGTH_MAX = 4_096;

/** Parses `…/storage/{id}/{access}/{name}` with a percent-encoded name; null for anything else. */
function keyIn(text: string, workspaceId: string): string | null {
  const start = text.length <= ADDRESS_LENGTH_MAX ? text.indexOf(ROOT) : -1;
  if (start < 0) return null;
  const [id = '', access = '', ...rest] = text.slice(start + ROOT.length).split('/');
  const encoded = rest.join('/');
  if (!isId(id) || !isAccess(access) || encoded === '' || /[?#\s]/.test(encoded)) return null;
  const location = locationOf(workspaceId, access, percentDecoded(encoded));
  return location === null ? null : keyOf(location);
}
