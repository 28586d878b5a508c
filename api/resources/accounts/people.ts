/** The operator adds people to an organization, and removes people with what belongs to them alone. No route does this. */
import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Role } from '#api/db/schema.ts';
import { againWhenTaken } from '#api/db/taken.ts';
import { deleteAccountMails } from '#api/mail/mailer.ts';
import { deleteOrganizations } from '#api/resources/organizations/deletion.ts';
import {
  changeRole,
  hasOtherOwner,
  insertMembership,
  organizationsOf,
  roleIn,
} from '#api/resources/organizations/store.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import {
  deleteTokens,
  deleteUser,
  findUserByEmail,
  findUserToChange,
  insertToken,
  insertUser,
} from './store.ts';

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
  | {
      readonly kind: 'removed';
      /** Names of the organizations that go with the person. */
      readonly organizations: readonly string[];
      /** Keys that the person made in organizations that stay, and may know. */
      readonly apiKeys: readonly { readonly id: string; readonly label: string }[];
    }
  | { readonly kind: 'stranger' }
  | { readonly kind: 'onlyOwner'; readonly organization: string };

/**
 * Deletes the account of a person, and the organizations that nobody else belongs to. Refuses it while the organization of
 * the first start, or one with other people, would have no owner who can log in.
 */
export function removePerson({ db, clock }: Pick<Context, 'db' | 'clock'>, email: string): Promise<Removal> {
  return db.transaction().execute(async (trx) => {
    const found = await findUserByEmail(trx, email);
    if (found === null) return { kind: 'stranger' };
    const { id } = found;
    const before = (await organizationsOf(trx, id)).map((one) => one.id);
    await lockRow(trx, 'organizations', ...before);
    await lockRow(trx, 'users', id);
    const own: string[] = [];
    const organizations: string[] = [];
    for (const one of await organizationsOf(trx, id)) {
      if (one.isOwn) {
        own.push(one.id);
        organizations.push(one.name);
      } else if (one.role === 'owner' && !(await hasOtherOwner(trx, one.id, id)))
        return { kind: 'onlyOwner', organization: one.name };
    }
    await deleteOrganizations(trx, own, toTimestamp(clock()));
    const apiKeys = await trx
      .selectFrom('apiKeys')
      .select(['id', 'label'])
      .where('createdBy', '=', id)
      .orderBy('id')
      .execute();
    await deleteAccountMails(trx, email);
    await deleteUser(trx, id);
    return { kind: 'removed', organizations, apiKeys };
  });
}
