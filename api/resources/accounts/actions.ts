/**
 * Signs people up, and changes passwords and addresses. No result reveals whether an address has an account: work that takes longer
 * for a known address runs after the reply.
 */
import { finished } from 'node:stream/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isTooLong } from '#api/auth/password.ts';
import { endSessionsOf } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { againWhenTaken, isUniqueViolation } from '#api/db/taken.ts';
import { badRequest, invalidFields, notAuthenticated, tooManyRequests } from '#api/errors.ts';
import type { createGuesses } from '#api/limits/guesses.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { mailAccount } from './mails.ts';
import {
  type AccountLink,
  deleteTokens,
  findToken,
  findTokenToUse,
  findUser,
  findUserByEmail,
  findUserToChange,
  insertUser,
  isAsProven,
  type Purpose,
  updateUser,
} from './store.ts';

/**
 * Any number of people may sign up with an address that nobody has verified yet. The password behind the link replaces
 * that of the sign-up, so that the owner's click does not confirm a stranger's password.
 *
 * @param account an address as `normalizeEmail` returns it, and a password that `passwordProblem` accepts
 */
export async function signUp(
  context: Context,
  account: { readonly name: string; readonly email: string; readonly password: string },
): Promise<void> {
  const { db, passwords, clock, random } = context;
  const { name, email, password } = account;
  // The password is hashed for new and for known addresses, so that the time reveals nothing.
  const passwordHash = await passwords.hash(password);
  // If two people sign up with one address at once, the second finds the account of the first.
  await againWhenTaken(['users.email'], () =>
    db.transaction().execute(async (trx) => {
      const known = await findUserToChange(trx, email);
      if (known === null) {
        const id = await insertUser(trx, { name, email, passwordHash }, toTimestamp(clock()), random);
        await mailAccount(context, trx, email, { userId: id, purpose: 'verifyEmail' });
      } else if (known.emailVerified === null) {
        await mailAccount(context, trx, email, { userId: known.id, purpose: 'verifyEmail' });
      } else {
        await mailAccount(context, trx, email, { kind: 'accountExists' });
      }
    }),
  );
}

/** Sends another verification mail after the reply, if the account still needs one. */
export function resendVerification(context: Context, reply: FastifyReply, address: string): void {
  behind(context, reply, async (trx) => {
    const user = await findUserToChange(trx, address);
    if (user?.emailVerified !== null) return;
    await mailAccount(context, trx, address, { userId: user.id, purpose: 'verifyEmail' });
  });
}

/** Mails a link to choose a new password after the reply, if the address has an account with a password. */
export function forgotPassword(context: Context, reply: FastifyReply, address: string): void {
  behind(context, reply, async (trx) => {
    const user = await findUserToChange(trx, address);
    if (user === null || user.passwordHash === null) return;
    await mailAccount(context, trx, address, { userId: user.id, purpose: 'resetPassword' });
  });
}

/**
 * Changes the password, once for each link, and ends all sessions.
 *
 * @param password one that `passwordProblem` accepts
 * @returns false if the link has ended, was used, or never existed
 */
export function resetPassword(
  context: Context,
  request: FastifyRequest,
  { token, password }: { readonly token: string; readonly password: string },
): Promise<boolean> {
  return useLink(
    context,
    request,
    { purpose: 'resetPassword', token, action: 'passwordChanged' },
    async () => {
      const passwordHash = await context.passwords.hash(password);
      return async (trx, { user: { id } }) => {
        await updateUser(trx, id, { passwordHash }, toTimestamp(context.clock()));
        // An attacker who was logged in may have requested a change of its address.
        await deleteTokens(trx, id, ['resetPassword', 'changeEmail']);
      };
    },
  );
}

/**
 * Mails a link to the new address. One that is taken gets no mail, and the result is the same.
 *
 * @throws ApiError invalid_fields for a wrong password, bad_request for the address of the account, too_many_requests
 */
export async function askForEmail(
  context: Context,
  guesses: ReturnType<typeof createGuesses>,
  userId: string,
  { email, password }: { readonly email: string; readonly password: string },
): Promise<void> {
  const { db, passwords } = context;
  const user = await findUser(db, userId);
  if (user === null) throw notAuthenticated();
  const seconds = await guesses.begin(userId);
  if (seconds !== null) throw tooManyRequests(seconds);
  const isRight = !isTooLong(password) && (await passwords.verify(password, user.passwordHash));
  if (!isRight) throw wrongPassword();
  await guesses.giveBack(userId);
  if (email === user.email) throw badRequest('This is the address of the account already');
  await db.transaction().execute(async (trx) => {
    if (!(await isAsProven(trx, user))) throw wrongPassword();
    if ((await findUserByEmail(trx, email)) !== null) return;
    await deleteTokens(trx, userId, ['changeEmail']);
    await mailAccount(context, trx, email, { userId, purpose: 'changeEmail' });
  });
}

function wrongPassword() {
  return invalidFields({ password: 'is not the password of this account' });
}

/**
 * Changes the address, once for each link, and ends all sessions.
 *
 * @returns false if the link has ended, was used, or never existed, or the address was taken meanwhile
 */
export async function changeEmail(
  context: Context,
  request: FastifyRequest,
  token: string,
): Promise<boolean> {
  try {
    return await useLink(
      context,
      request,
      { purpose: 'changeEmail', token, action: 'emailChanged' },
      async () => {
        const emailVerified = toTimestamp(context.clock());
        return async (trx, { user: { id, email: oldEmail }, email }) => {
          await updateUser(trx, id, { email, emailVerified }, emailVerified);
          // Ends the links that were sent to the old address.
          await deleteTokens(trx, id, ['changeEmail', 'resetPassword', 'verifyEmail']);
          await mailAccount(context, trx, oldEmail, { kind: 'emailChanged' });
        };
      },
    );
  } catch (error) {
    if (isUniqueViolation(error, 'users.email')) return false;
    throw error;
  }
}

/**
 * Uses the link of a mail, ends all sessions, and writes the audit entry.
 *
 * @param prepare does slow work for links that exist; invented links cost nothing
 * @returns false if the link does not work
 */
async function useLink(
  context: Context,
  request: FastifyRequest,
  { purpose, token, action }: { readonly purpose: Purpose; readonly token: string; readonly action: string },
  prepare: () => Promise<(trx: Database, link: AccountLink) => Promise<void>>,
): Promise<boolean> {
  const { db, clock } = context;
  const link = await findToken(db, purpose, token, clock());
  const change = link === null ? null : await prepare();
  const isUsed =
    change !== null &&
    (await db.transaction().execute(async (trx) => {
      // If somebody opens the link twice at once, one of the requests makes the change.
      const found = await findTokenToUse(trx, purpose, token, clock());
      if (found === null) return false;
      await change(trx, found);
      await endSessionsOf(trx, found.user.id);
      return true;
    }));
  if (isUsed && link !== null) {
    const actor = { type: 'user', id: link.user.id } as const;
    await context.audit.record(request, { action, actor });
  }
  return isUsed;
}

/** Runs the work after the reply, because looking up an address takes longer if it has an account. */
function behind(
  { db, background }: Context,
  reply: FastifyReply,
  work: (trx: Database) => Promise<void>,
): void {
  background.add(() => db.transaction().execute(work), finished(reply.raw));
}
