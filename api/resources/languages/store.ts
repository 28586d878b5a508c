/** The languages of workspaces. */
import { sql } from 'kysely';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Decoded, LanguageTable } from '#api/db/schema.ts';
import { conflict } from '#api/errors.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';

export type Language = Decoded<LanguageTable>;

export const languages = workspaceTable<Language>('languages', {
  order: ['workspaceId', 'code'],
  // There are some 180 codes of two letters.
  limit: { max: 200, noun: 'languages' },
});

/** @throws ApiError forbidden when there are too many; conflict when the code is taken, in upper or lower case */
export async function addLanguage(trx: Database, language: Language): Promise<void> {
  const { workspaceId, code } = language;
  await lockRow(trx, 'workspaces', workspaceId);
  await languages.refuseFull(trx, workspaceId);
  const taken = await trx
    .selectFrom('languages')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where(sql`lower("code")`, '=', code.toLowerCase())
    .executeTakeFirst();
  if (taken !== undefined) throw conflict(`Language with code ${code} already exists`);
  await languages.insert(trx, language);
}
