/** What a person needs to begin: an organization of their own, with one workspace in it. */
import type { Kysely } from 'kysely';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { newId, type Random } from '#api/ids.ts';
import { insertDefaultAttributeKeys } from '#api/resources/contacts/store.ts';
import { defaultSettings, insertWorkspace } from '#api/resources/workspaces/store.ts';

/**
 * Made once, when the address is verified and not before: whoever signs up with invented addresses leaves only a user
 * behind. Does nothing for a member of an organization. Call it inside a transaction.
 */
export async function ensureHome(
  db: Kysely<Database>,
  user: { readonly id: string; readonly name: string },
  now: Timestamp,
  random: Random,
): Promise<void> {
  const membership = await db
    .selectFrom('memberships')
    .select('organizationId')
    .where('userId', '=', user.id)
    .executeTakeFirst();
  if (membership !== undefined) return;
  const row = { createdAt: now, updatedAt: now };
  const organizationId = newId(random);
  const workspaceId = newId(random);
  await db
    .insertInto('organizations')
    .values({ ...row, id: organizationId, name: `Organization of ${user.name}` })
    .execute();
  await db
    .insertInto('memberships')
    .values({ organizationId, userId: user.id, role: 'owner', createdAt: now })
    .execute();
  await insertWorkspace(db, {
    ...row,
    id: workspaceId,
    organizationId,
    name: 'My workspace',
    environmentId: workspaceId,
    appSetupCompleted: false,
    websiteSetupCompleted: false,
    settings: defaultSettings,
  });
  await insertDefaultAttributeKeys(db, workspaceId, now, random);
}
