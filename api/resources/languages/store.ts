/** Changes the languages of workspaces; `workspaces/store.ts` lists those of one. */
import { sql } from 'kysely';
import { countRows } from '#api/db/count.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { conflict, forbidden } from '#api/errors.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { insertLanguage, type Language } from '#api/resources/workspaces/store.ts';

/** Maximum number of languages in a workspace. There are some 180 codes of two letters. */
const LANGUAGES_MAX = 200;

/** Lists the languages of several workspaces by workspace and code, which is the order of the index. */
export function listLanguagesOf(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly Language[]> {
  return db
    .selectFrom('languages')
    .selectAll()
    .where('workspaceId', 'in', workspaceIds)
    .orderBy('workspaceId')
    .orderBy('code')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
}

export async function findLanguage(db: Database, id: string): Promise<Language | null> {
  return (await db.selectFrom('languages').selectAll().where('id', '=', id).executeTakeFirst()) ?? null;
}

function countLanguages(db: Database, workspaceId: string): Promise<number> {
  return countRows(db.selectFrom('languages').where('workspaceId', '=', workspaceId));
}

export async function isLanguageUsed(db: Database, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('surveyLanguages')
    .select('surveyId')
    .where('languageId', '=', id)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

export async function deleteLanguage(db: Database, id: string): Promise<void> {
  await db.deleteFrom('languages').where('id', '=', id).execute();
}

/** @throws ApiError forbidden when there are too many; conflict when the code is taken, in upper or lower case */
export async function addLanguage(trx: Database, language: Language): Promise<void> {
  await lockRow(trx, 'workspaces', language.workspaceId);
  if ((await countLanguages(trx, language.workspaceId)) >= LANGUAGES_MAX) {
    throw forbidden(`A workspace can have ${LANGUAGES_MAX} languages; delete one that is not used`);
  }
  const { workspaceId, code } = language;
  const taken = await trx
    .selectFrom('languages')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where(sql`lower("code")`, '=', code.toLowerCase())
    .executeTakeFirst();
  if (taken !== undefined) throw conflict(`Language with code ${code} already exists`);
  await insertLanguage(trx, language);
}
