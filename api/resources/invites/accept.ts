/**
 * Accepts an invite. The link proves who owns the mailbox, so a new account needs no other mail. For an existing
 * account the link alone is not enough: its owner must be logged in.
 */
import { normalizeEmail, passwordProblem } from '#api/auth/password.ts';
import type { Context } from '#api/context.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { againWhenTaken } from '#api/db/taken.ts';
import { ApiError, badRequest, conflict, forbidden, invalidFields } from '#api/errors.ts';
import { texts } from '#api/resources/accounts/login.ts';
import {
  deleteTokens,
  findUserByEmail,
  findUserToChange,
  insertUser,
  type User,
  updateUser,
} from '#api/resources/accounts/store.ts';
import { countMembers, MEMBERS_MAX } from '#api/resources/members/store.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { insertMembership, lockPeople, roleOf } from '#api/resources/organizations/store.ts';
import { findTeam, setTeamMember } from '#api/resources/teams/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { findOpenInvite, type Invite, takeInvite } from './store.ts';

interface Acceptance {
  readonly token: string;
  /** The id of the logged-in user; null if nobody is. */
  readonly sessionUserId: string | null;
  readonly name: string;
  readonly password: string;
}

interface Accepted {
  readonly userId: string;
  readonly organizationId: string;
  readonly isNew: boolean;
}

type Parts = Pick<Context, 'db' | 'clock' | 'random' | 'passwords'>;

/** Whether the account counts. One that was never verified does not, because its password may be an attacker's. */
export function isAccount(user: User | null): boolean {
  return user !== null && user.emailVerified !== null;
}

/**
 * @param finish runs in the same transaction, for example to begin a session
 * @throws ApiError bad_request, invalid_fields, not_authenticated, forbidden, conflict; nothing has changed then
 */
export async function acceptInvite<T>(
  { db, clock, random, passwords }: Parts,
  { token, sessionUserId, name, password }: Acceptance,
  finish: (trx: Database, accepted: Accepted) => Promise<T>,
): Promise<T> {
  // Check the invite before the password is hashed, so that invented links cost little.
  const invite = await findOpenInvite(db, token, clock());
  if (invite === null) throw inviteEnded();
  const known = await findUserByEmail(db, invite.email);
  const account = isAccount(known) ? null : await newAccount();

  // If somebody signs up with the address meanwhile, that account is not verified.
  return againWhenTaken(['users.email'], () => db.transaction().execute((trx) => accept(trx, invite)));

  async function accept(trx: Database, { organizationId }: Invite): Promise<T> {
    await lockPeople(trx, organizationId, '');
    // Check again: the link may have been used twice at once, or the invite revoked or sent again.
    const open = await findOpenInvite(trx, token, clock());
    if (open === null || !(await takeInvite(trx, open.id))) throw inviteEnded();
    const now = toTimestamp(clock());
    const userId = await userFor(trx, now);
    await join(trx, open, userId, now);
    return finish(trx, { userId, organizationId: open.organizationId, isNew: account !== null });
  }

  async function newAccount() {
    const problem = passwordProblem(password);
    if (problem !== null) throw invalidFields({ password: problem });
    return { name: plainName(name), passwordHash: await passwords.hash(password) };
  }

  async function userFor(trx: Database, now: Timestamp): Promise<string> {
    const email = normalizeEmail(invite?.email ?? '') ?? '';
    const user = await findUserToChange(trx, email);
    if (user !== null && user.isActive !== 1) throw forbidden(texts.inactive);
    if (user !== null && isAccount(user)) {
      if (user.id !== sessionUserId) throw loginNeeded();
      return user.id;
    }
    if (account === null) throw inviteEnded();
    const verified = { ...account, emailVerified: now };
    if (user === null) return insertUser(trx, { ...verified, email }, now, random);
    await updateUser(trx, user.id, verified, now);
    await deleteTokens(trx, user.id, ['verifyEmail', 'resetPassword', 'changeEmail']);
    return user.id;
  }
}

async function join(trx: Database, invite: Invite, userId: string, now: Timestamp): Promise<void> {
  const { organizationId, role, teamIds } = invite;
  if ((await roleOf(trx, organizationId, userId)) === null) {
    if ((await countMembers(trx, organizationId)) >= MEMBERS_MAX) {
      throw conflict(`An organization has at most ${MEMBERS_MAX} members`);
    }
    await insertMembership(trx, { organizationId, userId, role, createdAt: now });
  }
  for (const teamId of teamIds) {
    if ((await findTeam(trx, organizationId, teamId)) === null) continue;
    await setTeamMember(trx, { teamId, userId, role: 'contributor' }, now);
  }
}

function inviteEnded(): ApiError {
  return badRequest('This invitation has ended, was used or was revoked; ask for a new one');
}

function loginNeeded(): ApiError {
  return new ApiError(
    'not_authenticated',
    'The invited address has an account: log in with it first, then accept the invitation',
  );
}
