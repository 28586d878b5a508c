/**
 * Keeps uploaded files that an answer or a survey names. A file that nothing names within a day is deleted (files.ts).
 * Writing an answer or a survey claims its files in the same transaction. A claim is permanent. So a file that was named
 * once stays until it is deleted itself, or together with its response, survey or workspace.
 */
import type { Database, Timestamp } from '#api/db/schema.ts';
import { percentDecoded } from '#api/values/percent-encoding.ts';
import { isAccess, keyOf, locationOf } from './key.ts';

/** Maximum number of files that one text claims, far below the databases' limits for parameters. */
const FILES_MAX = 1_000;

/**
 * Finds the names of files in any text, such as HTML and CSS. Every name that the API makes ends in a UUID and an
 * extension. A part of a name has no slash, so no part of a text is searched twice.
 */
const FILE =
  /\/storage\/([0-9a-z]{1,64})\/(public|private)\/((?:surveys\/[0-9a-z]{1,64}\/elements\/[\w-]{1,255}\/)?[^"/\\<>?#]{1,2000}?--fid--[0-9a-f-]{36}\.[A-Za-z0-9]{1,20})/g;

interface Naming {
  readonly workspaceId: string;
  /** JSON that may contain addresses. */
  readonly text: string;
  readonly now: Timestamp;
}

/**
 * Claims files whose names are anywhere in a text, such as a survey's document with pictures in its questions.
 *
 * @returns their keys
 */
export async function claimFilesIn(db: Database, naming: Naming): Promise<readonly string[]> {
  const keys = [...keysIn(naming)].slice(0, FILES_MAX);
  if (keys.length === 0) return [];
  await db
    .updateTable('files')
    .set({ claimedAt: naming.now })
    .where('key', 'in', keys)
    .where('claimedAt', 'is', null)
    .execute();
  return keys;
}

function keysIn({ workspaceId, text }: Naming): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const [, id = '', access = '', name = ''] of text.matchAll(FILE)) {
    // The id in the path may be that of another workspace.
    for (const owner of [id, workspaceId]) {
      const location = isAccess(access) ? locationOf(owner, access, percentDecoded(name)) : null;
      if (location !== null) keys.add(keyOf(location));
    }
  }
  return keys;
}

/**
 * Claims the files that the answers of a response name. Those that are answers to its survey then belong to the response,
 * unless they already belong to another one, and are deleted together with it. Public files, such as pictures of a survey,
 * never belong to a response.
 */
export async function claimFiles(
  db: Database,
  response: {
    readonly id: string;
    readonly workspaceId: string;
    readonly surveyId: string;
    readonly updatedAt: Timestamp;
    readonly data: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  const { id, workspaceId, surveyId, updatedAt: now, data } = response;
  const keys = await claimFilesIn(db, { workspaceId, text: JSON.stringify(data), now });
  if (keys.length === 0) return;
  await db
    .updateTable('files')
    .set({ responseId: id })
    .where('key', 'in', keys)
    .where('access', '=', 'private')
    .where('responseId', 'is', null)
    .where('surveyId', '=', surveyId)
    .execute();
}
