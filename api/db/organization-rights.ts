/** Migrations that change rights in organizations. */
import { countRows } from './count.ts';
import type { Database } from './schema.ts';

/**
 * Every key used to get write on its organization unless its creator said otherwise. Keys that do not manage all
 * workspaces lose it here.
 *
 * @returns a sentence for the log that counts the keys; null if there were none
 */
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

/**
 * The rights of people with the role `member` came from teams.
 *
 * @returns a sentence for the log that counts them; null if there are none
 */
export async function countMembersWithoutRights(trx: Database): Promise<string | null> {
  const members = await countRows(trx.selectFrom('memberships').where('role', '=', 'member'));
  if (members === 0) return null;
  return `Memberships with the role member, which give no rights any more: ${members}. For people who may do everything in their organization, run: npm run people -- add EMAIL`;
}
