/** Creates an organization with its owner and one workspace, at the first start and for people who sign up. */
import type { Database, Timestamp } from '#api/db/schema.ts';
import { insertDefaultAttributeKeys } from '#api/resources/contacts/keys.ts';
import { insertWorkspace, type Workspace } from '#api/resources/workspaces/store.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { insertMembership } from './store.ts';

interface NewOrganization {
  readonly name: string;
  readonly ownerId: string;
  /** Id of the workspace; null to generate one. */
  readonly workspaceId: string | null;
  readonly createdAt: Timestamp;
  readonly isOperators: boolean;
}

/** Call it inside a transaction. */
export async function createOrganization(
  trx: Database,
  { name, ownerId, workspaceId, createdAt, isOperators }: NewOrganization,
  random: Random,
): Promise<{ readonly organizationId: string; readonly workspaceId: string }> {
  const row = { createdAt, updatedAt: createdAt };
  const organizationId = newId(random);
  const id = workspaceId ?? newId(random);
  await trx
    .insertInto('organizations')
    .values({ ...row, id: organizationId, name, isOperators: isOperators ? 1 : 0 })
    .execute();
  await insertMembership(trx, { organizationId, userId: ownerId, role: 'owner', createdAt });
  await createWorkspace(trx, { organizationId, id, name: 'My workspace', createdAt }, random);
  return { organizationId, workspaceId: id };
}

/** Creates a workspace with the default attribute keys. Call it inside a transaction. */
export async function createWorkspace(
  trx: Database,
  given: Pick<Workspace, 'organizationId' | 'name' | 'createdAt'> & { readonly id?: string },
  random: Random,
): Promise<Workspace> {
  const { id = newId(random) } = given;
  const workspace = await insertWorkspace(trx, { ...given, id });
  await insertDefaultAttributeKeys(trx, id, given.createdAt, random);
  return workspace;
}

/**
 * Creates an organization for a person who has none, unless sign-up is closed. It runs when the address is verified, so
 * sign-ups with invented addresses leave only a user behind. Call it inside a transaction that locks the user.
 */
export async function ensureOrganization(
  trx: Database,
  user: { readonly id: string; readonly name: string },
  { now, random, isSignupEnabled }: { now: Timestamp; random: Random; isSignupEnabled: boolean },
): Promise<void> {
  if (!isSignupEnabled) return;
  const membership = await trx
    .selectFrom('memberships')
    .select('organizationId')
    .where('userId', '=', user.id)
    .executeTakeFirst();
  if (membership !== undefined) return;
  const name = `Organization of ${user.name}`;
  await createOrganization(
    trx,
    { name, ownerId: user.id, workspaceId: null, createdAt: now, isOperators: false },
    random,
  );
}
