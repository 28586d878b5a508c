/**
 * Changes the e-mail address of the caller's own account: a route mails a link to the new address, and a button on the
 * page behind the link makes the change, because programs that only open links must not use them up.
 *
 * Callers: the route is for sessions, with the password of the account; the page is for anybody who has the link.
 */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { emailIn, isTooLong } from '#api/auth/password.ts';
import { forPeople, sessionOf } from '#api/auth/plugin.ts';
import { endSessionsOf } from '#api/auth/session.ts';
import type { Context, Routes } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { badRequest, invalidFields, notAuthenticated, tooManyRequests } from '#api/errors.ts';
import { sendPage } from '#api/http/page.ts';
import { form, hidden, links } from '#api/http/page-form.ts';
import { createGuesses } from '#api/limits/guesses.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { escapeHtml } from '#shared/page.ts';
import { acceptForms, fieldOf } from './form.ts';
import { changeEmailMail, emailChangedMail, mailAccount } from './mails.ts';
import {
  deleteTokens,
  findToken,
  findTokenToUse,
  findUser,
  findUserByEmail,
  insertToken,
  isAsProven,
  updateUser,
} from './store.ts';

const PATH = '/verify-email-change';

export const profileRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, passwords, config } = context;
  const guesses = createGuesses('profile.password', context);

  app.put(
    '/api/v1/profile/email',
    {
      schema: {
        summary: 'Ask for another e-mail address',
        body: Type.Object({ email: Type.String(), password: Type.String() }),
        response: { 200: Type.Object({ data: Type.Object({ success: Type.String() }) }) },
      },
      config: { ...forPeople, limit: 'actions.emailUpdate' },
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

export const emailChangePages: Routes = async (app, { context }) => {
  const { db, clock } = context;
  acceptForms(app);

  app.get(PATH, { schema: { hide: true } }, async (request, reply) => {
    const token = fieldOf(request.query, 'token');
    const found = await findToken(db, 'changeEmail', token, clock());
    if (found === null) return sendEnded(reply);
    return sendPage(reply, 200, 'Change your e-mail address', [
      `<p>One step more: this makes ${escapeHtml(found.email)} the address of your account. You are then logged out everywhere.</p>`,
      form(`${app.basePath}${PATH}`, [hidden('token', token)], 'Change the address'),
    ]);
  });

  // It needs no CSRF token, because the form works only with the token of the link, and without a login.
  app.post(PATH, { schema: { hide: true } }, async (request, reply) => {
    const token = fieldOf(request.body, 'token');
    const link = await findToken(db, 'changeEmail', token, clock());
    const isChanged = link !== null && (await changeEmail(context, token));
    if (!isChanged) return sendEnded(reply);
    const actor = { type: 'user', id: link.user.id } as const;
    await context.audit.record(request, { action: 'emailChanged', actor });
    return sendPage(reply, 200, 'Your e-mail address is changed', [
      '<p>You were logged out everywhere.</p>',
      links([[`${app.basePath}/auth/login`, 'Log in with the new address']]),
    ]);
  });
};

function sendEnded(reply: FastifyReply): FastifyReply {
  return sendPage(reply, 400, 'This link does not work', [
    '<p>It has ended or was used, or the address is taken.</p>',
    links([[`${reply.server.basePath}/account`, 'Your account']]),
  ]);
}

/** @returns false if the link has ended, or the address was taken meanwhile */
async function changeEmail(context: Context, token: string): Promise<boolean> {
  const { db, clock } = context;
  try {
    return await db.transaction().execute(async (trx) => {
      const found = await findTokenToUse(trx, 'changeEmail', token, clock());
      if (found === null || found.user.isActive !== 1) return false;
      const { id, email: oldEmail } = found.user;
      const now = toTimestamp(clock());
      await updateUser(trx, id, { email: found.email, emailVerified: now }, now);
      // Ends the links that were sent to the old address.
      await deleteTokens(trx, id, ['changeEmail', 'resetPassword', 'verifyEmail']);
      await endSessionsOf(trx, id);
      await mailAccount(context, trx, emailChangedMail(oldEmail));
      return true;
    });
  } catch (error) {
    if (isUniqueViolation(error, 'users.email')) return false;
    throw error;
  }
}

function wrongPassword() {
  return invalidFields({ password: 'is not the password of this account' });
}
