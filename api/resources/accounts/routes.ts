/**
 * Accounts: sign up, forget and reset a password, get another verification mail. No reply says whether an address has
 * an account.
 *
 * Callers: anybody, limited by address.
 */
import { finished } from 'node:stream/promises';
import type { FastifyReply } from 'fastify';
import type { Kysely } from 'kysely';
import { Type } from 'typebox';
import { normalizeEmail, passwordProblem } from '#api/auth/password.ts';
import { endSessionsOf } from '#api/auth/session.ts';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { againWhenTaken } from '#api/db/taken.ts';
import { badRequest, invalidFields } from '#api/errors.ts';
import { redirectTo } from '#api/http/media.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { noteAccountEvent } from './account-event.ts';
import { answerForms } from './account-forms.ts';
import { acceptForms } from './form.ts';
import { accountExistsMail, mailAccount, mayMail, resetMail, verificationMail } from './mails.ts';
import { refuseWhileClosed } from './signup.ts';
import {
  type Choice,
  deleteTokens,
  findToken,
  findTokenToUse,
  findUserToChange,
  insertToken,
  insertUser,
  type User,
  updateUser,
} from './store.ts';

const done = {
  200: Type.Object({ data: Type.Object({ success: Type.String() }) }),
  303: redirectTo('the next page, for who sent the form of a page'),
};
/** A form of a page must be ours, and sign-up may be closed. */
const refuses = ['bad_request', 'forbidden'] as const;
const Text = Type.String();

export const accountRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, passwords, config, mailer, background } = context;
  acceptForms(app);
  answerForms(app, context);

  app.post(
    '/api/auth/signup',
    {
      schema: { body: Type.Object({ name: Text, email: Text, password: Text }), response: done },
      config: { limit: 'auth.signup', refuses },
      onRequest: refuseWhileClosed(context),
    },
    async (request) => {
      const { password } = request.body;
      const name = plainName(request.body.name);
      const email = emailIn(request.body.email);
      const problem = passwordProblem(password);
      if (problem !== null) throw invalidFields({ password: problem });
      // The password is hashed for new and for known addresses, so that the time reveals nothing.
      const passwordHash = await passwords.hash(password);
      const account = { name, email, passwordHash };
      // If two people sign up with one address at once, the second finds the account of the first.
      const userId = await againWhenTaken(['users.email'], () =>
        db.transaction().execute((trx) => signUp(trx, account)),
      );
      if (userId !== null) {
        await noteAccountEvent(context, request, { action: 'created', userId, changes: { by: 'signup' } });
      }
      return success('Check your mailbox: open the link in the mail to confirm your address');
    },
  );

  app.post(
    '/api/auth/resend-verification',
    {
      schema: {
        body: Type.Object({ email: Type.Optional(Text), token: Type.Optional(Text) }),
        response: done,
      },
      config: { limit: 'auth.verifyEmail', refuses },
    },
    async (request, reply) => {
      const { email, token } = request.body;
      if (email === undefined && token === undefined) throw invalidFields({ email: 'Required' });
      const address = email === undefined ? null : emailIn(email);
      behind(reply, async (trx) => {
        const link = address === null ? await findTokenToUse(trx, 'verifyEmail', token ?? '', clock()) : null;
        const user = address === null ? link?.user : await findUserToChange(trx, address);
        const choice = link?.choice ?? (user ? choiceOf(user) : null);
        if (user && user.emailVerified === null) await sendVerification(trx, user, choice);
      });
      return success('If this address waits for its confirmation, a mail is on its way');
    },
  );

  app.post(
    '/api/auth/forgot-password',
    {
      schema: { body: Type.Object({ email: Text }), response: done },
      config: { limit: 'auth.forgotPassword', refuses },
    },
    async (request, reply) => {
      const address = emailIn(request.body.email);
      behind(reply, async (trx) => {
        const user = await findUserToChange(trx, address);
        if (user === null || user.passwordHash === null || user.isActive !== 1) return;
        const { id: userId, email } = user;
        const token = await insertToken(trx, { userId, purpose: 'resetPassword', email }, clock(), random);
        await mailAccount(context, trx, resetMail(config.publicUrl, email, token));
      });
      return success('If this address has an account, a mail is on its way');
    },
  );

  app.post(
    '/api/auth/reset-password',
    {
      schema: { body: Type.Object({ token: Text, password: Text }), response: done },
      config: { refuses: [...refuses, 'too_many_requests'] },
    },
    async (request) => {
      const { token, password } = request.body;
      const problem = passwordProblem(password);
      if (problem !== null) throw invalidFields({ password: problem });
      // Checked before the hash, so that invented links cost little.
      if ((await findToken(db, 'resetPassword', token, clock())) === null) throw linkEnded();
      const passwordHash = await passwords.hash(password);
      const userId = await db.transaction().execute(async (trx) => {
        // Check again: if somebody opens the link twice at once, one of the requests changes the password.
        const found = await findTokenToUse(trx, 'resetPassword', token, clock());
        if (found === null) throw linkEnded();
        const { id } = found.user;
        await updateUser(trx, id, { passwordHash }, toTimestamp(clock()));
        // An attacker who was in the account may have asked to change its address.
        await deleteTokens(trx, id, ['resetPassword', 'changeEmail']);
        await endSessionsOf(trx, id);
        return id;
      });
      await noteAccountEvent(context, request, {
        action: 'updated',
        userId,
        changes: { fields: ['password'], by: 'link' },
      });
      return success('The password is changed, and everybody is logged out; log in with the new one');
    },
  );

  /** Runs the work after the reply: looking up an address takes longer when it has an account. */
  function behind(reply: FastifyReply, work: (trx: Kysely<Database>) => Promise<void>): void {
    background.add(() => db.transaction().execute(work), finished(reply.raw));
  }

  /**
   * Any number of people may sign up with an address that nobody has verified yet. Each gets a link of their own,
   * which carries their name and password, so that the owner's click does not confirm a stranger's password.
   *
   * @returns the id of a new account; null: there was one
   */
  async function signUp(
    trx: Kysely<Database>,
    account: Choice & { readonly email: string },
  ): Promise<string | null> {
    const now = toTimestamp(clock());
    const { email } = account;
    const known = await findUserToChange(trx, email);
    if (known === null) {
      const id = await insertUser(trx, account, now, random);
      await sendVerification(trx, { id, email }, account);
      return id;
    }
    if (known.emailVerified === null) {
      await sendVerification(trx, known, account);
    } else {
      await mailAccount(context, trx, accountExistsMail(config.publicUrl, email));
    }
    return null;
  }

  async function sendVerification(
    trx: Kysely<Database>,
    { id: userId, email }: Pick<User, 'id' | 'email'>,
    choice: Choice | null,
  ): Promise<void> {
    // Links that nobody receives would only fill the table.
    if (!(await mayMail(context, trx, { to: email, kind: 'verifyEmail' }))) return;
    const token = await insertToken(trx, { userId, purpose: 'verifyEmail', email, choice }, clock(), random);
    await mailer.accept(trx, verificationMail(config.publicUrl, email, token));
  }
};

/** The name and password of the first sign-up, or of a later reset. */
function choiceOf({ name, passwordHash }: User): Choice | null {
  return passwordHash === null ? null : { name, passwordHash };
}

function emailIn(text: string): string {
  const email = normalizeEmail(text);
  if (email === null) throw invalidFields({ email: 'must be an e-mail address of at most 255 characters' });
  return email;
}

function linkEnded() {
  return badRequest('This link has ended or was used; ask for a new one at /auth/forgot-password');
}

function success(text: string) {
  return { data: { success: text } };
}
