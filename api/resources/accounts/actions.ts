/**
 * Signs people up, and resets passwords. No result reveals whether an address has an account: work that takes longer
 * for a known address runs after the reply.
 */
import { finished } from 'node:stream/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { endSessionsOf } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { againWhenTaken } from '#api/db/taken.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { accountExistsMail, mailAccount, mayMail, resetMail, verificationMail } from './mails.ts';
import {
  deleteTokens,
  findToken,
  findTokenToUse,
  findUserToChange,
  insertToken,
  insertUser,
  type User,
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
        await sendVerification(context, trx, { id, email });
      } else if (known.emailVerified === null) {
        await sendVerification(context, trx, known);
      } else {
        await mailAccount(context, trx, accountExistsMail(context.config.publicUrl, email));
      }
    }),
  );
}

/** Sends another verification mail after the reply, if the account still needs one. */
export function resendVerification(
  context: Context,
  reply: FastifyReply,
  by: { readonly email: string } | { readonly token: string },
): void {
  behind(context, reply, async (trx) => {
    const link = 'token' in by ? await findTokenToUse(trx, 'verifyEmail', by.token, context.clock()) : null;
    const user = 'email' in by ? await findUserToChange(trx, by.email) : link?.user;
    if (user && user.emailVerified === null) await sendVerification(context, trx, user);
  });
}

/** Mails a link to choose a new password after the reply, if the address has an account with a password. */
export function forgotPassword(context: Context, reply: FastifyReply, address: string): void {
  const { clock, random, config } = context;
  behind(context, reply, async (trx) => {
    const user = await findUserToChange(trx, address);
    if (user === null || user.passwordHash === null || user.isActive !== 1) return;
    const { id: userId, email } = user;
    const token = await insertToken(trx, { userId, purpose: 'resetPassword', email }, clock(), random);
    await mailAccount(context, trx, resetMail(config.publicUrl, email, token));
  });
}

/**
 * Changes the password, once for each link, and ends all sessions.
 *
 * @param password one that `passwordProblem` accepts
 * @returns false if the link has ended, was used, or never existed
 */
export async function resetPassword(
  context: Context,
  request: FastifyRequest,
  { token, password }: { readonly token: string; readonly password: string },
): Promise<boolean> {
  const { db, clock } = context;
  const link = await findToken(db, 'resetPassword', token, clock());
  // Invented links cost no hash.
  const isChanged = link !== null && (await useResetLink(context, token, password));
  if (isChanged) {
    const actor = { type: 'user', id: link.user.id } as const;
    await context.audit.record(request, { action: 'passwordChanged', actor });
  }
  return isChanged;
}

/** @returns false if the link was used meanwhile */
async function useResetLink(
  { db, passwords, clock }: Context,
  token: string,
  password: string,
): Promise<boolean> {
  const passwordHash = await passwords.hash(password);
  return db.transaction().execute(async (trx) => {
    // Check again: if somebody opens the link twice at once, one of the requests changes the password.
    const found = await findTokenToUse(trx, 'resetPassword', token, clock());
    if (found === null) return false;
    const { id } = found.user;
    await updateUser(trx, id, { passwordHash }, toTimestamp(clock()));
    // An attacker who was logged in may have requested a change of its address.
    await deleteTokens(trx, id, ['resetPassword', 'changeEmail']);
    await endSessionsOf(trx, id);
    return true;
  });
}

/** Runs the work after the reply, because looking up an address takes longer if it has an account. */
function behind(
  { db, background }: Context,
  reply: FastifyReply,
  work: (trx: Database) => Promise<void>,
): void {
  background.add(() => db.transaction().execute(work), finished(reply.raw));
}

async function sendVerification(
  context: Context,
  trx: Database,
  { id: userId, email }: Pick<User, 'id' | 'email'>,
): Promise<void> {
  const { clock, random, config, mailer } = context;
  // Links that are not mailed would only fill the table.
  if (!(await mayMail(context, trx, { to: email, kind: 'verifyEmail' }))) return;
  const token = await insertToken(trx, { userId, purpose: 'verifyEmail', email }, clock(), random);
  await mailer.accept(trx, verificationMail(config.publicUrl, email, token));
}
