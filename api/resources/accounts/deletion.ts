/**
 * What an owner deletes: a workspace, or the account together with the organizations that belong to it alone. Both are
 * gone at once; a job deletes their rows, see organizations/deletion.ts.
 */
import type { Context } from '#api/context.ts';
import { lockRow, lockRows } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { forbidden, notFound } from '#api/errors.ts';
import { deleteAccountMails } from '#api/mail/outbox.ts';
import { deleteKeysOf, deleteKeysOfOrganizations } from '#api/resources/api-keys/store.ts';
import { markOrganizations, organizationsOf, roleIn } from '#api/resources/organizations/store.ts';
import { findWorkspace, markDeleting, type Workspace } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { deleteUser, findUser } from './store.ts';

type Parts = Pick<Context, 'clock' | 'db' | 'states'>;

/** @throws ApiError not_found for who does not run its organization, forbidden for who does not own it */
export async function findOwned(db: Database, userId: string, workspaceId: string): Promise<Workspace> {
  const workspace = await findWorkspace(db, workspaceId);
  const role = workspace === null ? null : await roleIn(db, workspace.organizationId, userId);
  if (workspace === null || (role !== 'owner' && role !== 'manager'))
    throw notFound('Workspace', workspaceId);
  if (role === 'manager') throw forbidden('Only an owner of the organization may delete a workspace');
  return workspace;
}

/** @returns false if the person has stopped being the owner, or the workspace is gone */
export async function deleteOwned(
  { clock, db, states }: Parts,
  userId: string,
  { id, organizationId }: Pick<Workspace, 'id' | 'organizationId'>,
): Promise<boolean> {
  const marked = await db.transaction().execute(async (trx) => {
    await lockRow(trx, 'organizations', organizationId);
    if ((await roleIn(trx, organizationId, userId)) !== 'owner') return [];
    const found = await markDeleting(trx, { id }, toTimestamp(clock()));
    if (found.length > 0) await deleteKeysOf(trx, [id]);
    return found;
  });
  for (const one of marked) states.purge(one);
  return marked.length > 0;
}

type AccountDeletion =
  | { readonly kind: 'deleted'; readonly organizationIds: readonly string[] }
  /** An organization has other people, or the person is not its owner. */
  | { readonly kind: 'shared'; readonly organization: string }
  | { readonly kind: 'gone' };

export async function deleteAccount({ clock, db, states }: Parts, userId: string): Promise<AccountDeletion> {
  const before = (await organizationsOf(db, userId)).map(({ id }) => id);
  const { marked, ...deletion } = await db.transaction().execute(async (trx) => {
    await lockRows(trx, 'organizations', before);
    await lockRow(trx, 'users', userId);
    const user = await findUser(trx, userId);
    if (user === null) return { kind: 'gone', marked: [] } as const;
    const organizations = await organizationsOf(trx, userId);
    // One that came after the locks is not the person's own: the operator has just added the person to it.
    const shared = organizations.find(({ id, isAlone }) => !isAlone || !before.includes(id));
    if (shared !== undefined) return { kind: 'shared', organization: shared.name, marked: [] } as const;
    const organizationIds = organizations.map(({ id }) => id);
    const marked = await markAll(trx, organizationIds, toTimestamp(clock()));
    await deleteAccountMails(trx, user.email);
    await deleteUser(trx, userId);
    return { kind: 'deleted', organizationIds, marked } as const;
  });
  for (const one of marked) states.purge(one);
  return deletion;
}

async function markAll(trx: Database, organizationIds: readonly string[], now: string) {
  if (organizationIds.length === 0) return [];
  await deleteKeysOfOrganizations(trx, organizationIds);
  await markOrganizations(trx, organizationIds, now);
  return markDeleting(trx, { organizationIds }, now);
}
