/**
 * Changes the e-mail address of the caller's own account. The change happens on the page behind the link that is mailed
 * to the new address, see email-change-pages.ts.
 *
 * Callers: sessions, with the password of the account.
 */
import { Type } from 'typebox';
import { emailIn, isTooLong } from '#api/auth/password.ts';
import { forPeople, sessionOf } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, invalidFields, notAuthenticated, tooManyRequests } from '#api/errors.ts';
import { createGuesses } from '#api/limits/guesses.ts';
import { createMemoryCounters } from '#api/limits/memory-counters.ts';
import { changeEmailMail, mailAccount } from './mails.ts';
import { deleteTokens, findUser, findUserByEmail, insertToken, isAsProven } from './store.ts';

/** Maximum number of people whose guesses are counted at once. */
const GUESSERS_MAX = 10_000;

export const profileRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, passwords, config } = context;
  // The limit of the route allows every request while its store is away, so passwords are counted without the store.
  const counters = createMemoryCounters(clock, GUESSERS_MAX);
  const guesses = createGuesses('profile.password', { ...context, counters });

  app.put(
    '/api/v1/profile/email',
    {
      schema: {
        body: Type.Object({ email: Type.String(), password: Type.String() }),
        response: { 200: Type.Object({ data: Type.Object({ success: Type.String() }) }) },
      },
      config: {
        ...forPeople,
        limit: 'actions.emailUpdate',
        refuses: ['bad_request'],
      },
    },
    async (request) => {
      const { userId } = sessionOf(request);
      const { password } = request.body;
      const email = emailIn(request.body.email);
      const user = await findUser(db, userId);
      if (user === null) throw notAuthenticated();
      const seconds = await guesses.begin(userId);
      if (seconds !== null) throw tooManyRequests(seconds);
      if (isTooLong(password) || !(await passwords.verify(password, user.passwordHash))) {
        throw wrongPassword();
      }
      await guesses.giveBack(userId);
      if (email === user.email) throw badRequest('This is the address of the account already');
      await db.transaction().execute(async (trx) => {
        if (!(await isAsProven(trx, user))) throw wrongPassword();
        // An address that is taken gets no mail, and the reply is the same.
        if ((await findUserByEmail(trx, email)) !== null) return;
        await deleteTokens(trx, userId, ['changeEmail']);
        const token = await insertToken(trx, { userId, purpose: 'changeEmail', email }, clock(), random);
        await mailAccount(context, trx, changeEmailMail(config.publicUrl, email, token));
      });
      return { data: { success: 'If the address can be used, a mail with a link is on its way to it' } };
    },
  );
};

function wrongPassword() {
  return invalidFields({ password: 'is not the password of this account' });
}
