/** Gives a workspace one more language. */
import type { Kysely } from 'kysely';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { forbidden } from '#api/errors.ts';
import { insertLanguage, type Language } from '#api/resources/workspaces/store.ts';
import { countLanguages } from './store.ts';

/** Of one workspace; there are some 180 codes of two letters. */
const LANGUAGES_MAX = 200;

/** @throws ApiError forbidden when there are too many; the driver's unique violation when the code is there */
export async function addLanguage(trx: Kysely<Database>, language: Language): Promise<void> {
  await lockRow(trx, 'workspaces', language.workspaceId);
  if ((await countLanguages(trx, language.workspaceId)) >= LANGUAGES_MAX) {
    throw forbidden(`A workspace can have ${LANGUAGES_MAX} languages; delete one that is not used`);
  }
  await insertLanguage(trx, language);
}
