/** Changes to the languages of workspaces; `workspaces/store.ts` lists those of one. */
import type { Kysely } from 'kysely';
import { countRows } from '#api/db/count.ts';
import type { Database } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import type { Language } from '#api/resources/workspaces/store.ts';

/** Of several workspaces, by workspace and code: the order of the index. */
export function listLanguagesOf(
  db: Kysely<Database>,
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

export async function findLanguage(db: Kysely<Database>, id: string): Promise<Language | null> {
  return (await db.selectFrom('languages').selectAll().where('id', '=', id).executeTakeFirst()) ?? null;
}

export function countLanguages(db: Kysely<Database>, workspaceId: string): Promise<number> {
  return countRows(db.selectFrom('languages').where('workspaceId', '=', workspaceId));
}

export async function isLanguageUsed(db: Kysely<Database>, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('surveyLanguages')
    .select('surveyId')
    .where('languageId', '=', id)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

export async function deleteLanguage(db: Kysely<Database>, id: string): Promise<void> {
  await db.deleteFrom('languages').where('id', '=', id).execute();
}
