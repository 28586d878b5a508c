/** A new organization with its owner and one workspace in it: what the first start makes, and what a person who signs up gets. */
import type { Kysely } from 'kysely';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { newId, type Random } from '#api/ids.ts';
import { insertDefaultAttributeKeys } from '#api/resources/contacts/store.ts';
import { defaultSettings, insertWorkspace } from '#api/resources/workspaces/store.ts';

export interface NewOrganization {
  readonly name: string;
  readonly ownerId: string;
  /** null: one is made. */
  readonly workspaceId: string | null;
  readonly createdAt: Timestamp;
}

/** Call it inside a transaction. */
export async function createOrganization(
  trx: Kysely<Database>,
  { name, ownerId, workspaceId, createdAt }: NewOrganization,
  random: Random,
): Promise<{ readonly organizationId: string; readonly workspaceId: string }> {
  const row = { createdAt, updatedAt: createdAt };
  const organizationId = newId(random);
  const id = workspaceId ?? newId(random);
  await trx
    .insertInto('organizations')
    .values({ ...row, id: organizationId, name })
    .execute();
  await trx
    .insertInto('memberships')
    .values({ organizationId, userId: ownerId, role: 'owner', createdAt })
    .execute();
  await insertWorkspace(trx, {
    ...row,
    id,
    organizationId,
    name: 'My workspace',
    environmentId: id,
    appSetupCompleted: false,
    websiteSetupCompleted: false,
    settings: defaultSettings,
  });
  await insertDefaultAttributeKeys(trx, id, createdAt, random);
  return { organizationId, workspaceId: id };
}

/**
 * Gives a person who belongs to no organization one of their own. Called when the address is verified and not before:
 * whoever signs up with invented addresses leaves only a user behind. Call it inside a transaction.
 */
export async function ensureOrganization(
  trx: Kysely<Database>,
  user: { readonly id: string; readonly name: string },
  now: Timestamp,
  random: Random,
): Promise<void> {
  const membership = await trx
    .selectFrom('memberships')
    .select('organizationId')
    .where('userId', '=', user.id)
    .executeTakeFirst();
  if (membership !== undefined) return;
  const name = `Organization of ${user.name}`;
  await createOrganization(trx, { name, ownerId: user.id, workspaceId: null, createdAt: now }, random);
}
