/** The languages of workspaces. */
import type { Decoded, LanguageTable } from '#api/db/schema.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';

export type Language = Decoded<LanguageTable>;

export const languages = workspaceTable<Language>('languages', {
  order: ['workspaceId', 'code'],
  // There are some 180 codes of two letters.
  limit: { max: 200, noun: 'languages' },
});
