/** The operator adds people to an organization and removes them. No route does this. */
import { endSessionsOf } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Role } from '#api/db/schema.ts';
import { againWhenTaken } from '#api/db/taken.ts';
import {
  changeRole,
  deleteMembership,
  hasOtherOwner,
  insertMembership,
  roleIn,
} from '#api/resources/organizations/store.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { deleteTokens, findUserToChange, insertToken, insertUser, updateUser } from './store.ts';

interface AddedPerson {
  readonly role: Role;
  /** Token of the link with which the person chooses a password; null if the person has used a link already. */
  readonly token: string | null;
}

/**
 * Adds a person to an organization. An owner stays an owner. If the address has no account yet, one is created without a
 * password. Its earlier links end.
 *
 * @param email as `normalizeEmail` returns it
 */
export function addPerson(
  { db, clock, random }: Pick<Context, 'db' | 'clock' | 'random'>,
  { organizationId, email, isOwner }: { organizationId: string; email: string; isOwner: boolean },
): Promise<AddedPerson> {
  const add = async (trx: Database): Promise<AddedPerson> => {
    await lockRow(trx, 'organizations', organizationId);
    const createdAt = toTimestamp(clock());
    const known = await findUserToChange(trx, email);
    const [name = email] = email.split('@');
    const userId =
      known?.id ?? (await insertUser(trx, { name, email, passwordHash: null }, createdAt, random));
    if (known?.isActive === 0) await updateUser(trx, userId, { isActive: 1 }, createdAt);

    const before = await roleIn(trx, organizationId, userId);
    const role = isOwner || before === 'owner' ? 'owner' : 'manager';
    const membership = { organizationId, userId, role } as const;
    if (before === null) await insertMembership(trx, { ...membership, createdAt });
    else await changeRole(trx, membership);

    if (known !== null && known.emailVerified !== null) return { role, token: null };
    await deleteTokens(trx, userId, ['verifyEmail']);
    return {
      role,
      token: await insertToken(trx, { userId, purpose: 'verifyEmail', email }, clock(), random),
    };
  };
  return againWhenTaken(['users.email'], () => db.transaction().execute(add));
}

type Removal =
  /** Also lists the API keys that the person made. They belong to the organization, and the person may know them. */
  | { readonly kind: 'removed'; readonly apiKeys: readonly { readonly id: string; readonly label: string }[] }
  | { readonly kind: 'stranger' }
  | { readonly kind: 'onlyOwner' };

/** Removes a person, unless the organization would have no owner who can log in. */
export function removePerson(
  { db }: Pick<Context, 'db'>,
  { organizationId, email }: { organizationId: string; email: string },
): Promise<Removal> {
  return db.transaction().execute(async (trx) => {
    await lockRow(trx, 'organizations', organizationId);
    const user = await findUserToChange(trx, email);
    const role = user === null ? null : await roleIn(trx, organizationId, user.id);
    if (user === null || role === null) return { kind: 'stranger' };
    if (role === 'owner' && !(await hasOtherOwner(trx, organizationId, user.id)))
      return { kind: 'onlyOwner' };
    await deleteMembership(trx, organizationId, user.id);
    await endSessionsOf(trx, user.id);
    await deleteTokens(trx, user.id, ['verifyEmail']);
    const apiKeys = await trx
      .selectFrom('apiKeys')
      .select(['id', 'label'])
      .where('organizationId', '=', organizationId)
      .where('createdBy', '=', user.id)
      .orderBy('id')
      .execute();
    return { kind: 'removed', apiKeys };
  });
}
