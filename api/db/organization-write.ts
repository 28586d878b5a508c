/**
 * Every key used to get write on its organization unless its creator said otherwise. Keys that do not manage all
 * workspaces lose it here.
 */
import type { Database } from './schema.ts';

/** @returns a sentence for the log that counts the keys; null if there were none */
export async function takeOrganizationWrite(trx: Database): Promise<string | null> {
  const { numUpdatedRows } = await trx
    .updateTable('apiKeys')
    .set({ organizationWrite: 0 })
    .where('organizationWrite', '=', 1)
    .where((eb) => eb.or([eb('allWorkspaces', 'is', null), eb('allWorkspaces', '!=', 'manage')]))
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return null;
  return `API keys that lost write on their organization, because they do not manage all of its workspaces: ${numUpdatedRows}`;
}
