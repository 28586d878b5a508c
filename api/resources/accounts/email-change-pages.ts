/**
 * The page behind the link in a mail about a new address. It has a button that changes the address of the account,
 * because programs that only open links must not use them up.
 *
 * Callers: anybody who has the link.
 */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { endSessionsOf } from '#api/auth/session.ts';
import type { Routes } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { htmlPage } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { form, hidden, links } from '#api/http/page-form.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { escapeHtml } from '#shared/page.ts';
import { noteAccountEvent } from './account-event.ts';
import { acceptForms, fieldOf } from './form.ts';
import { emailChangedMail, mailAccount } from './mails.ts';
import { deleteTokens, findToken, findTokenToUse, updateUser } from './store.ts';

const PATH = '/verify-email-change';
const ended = htmlPage('A page: the link has ended, or was used.');
const Form = Type.Object({ token: Type.String() });
const page = { schema: { response: { 200: htmlPage('A page with a button.'), 400: ended } } };
const change = {
  schema: { response: { 200: htmlPage('A page: the address is changed.'), 400: ended } },
  config: { reads: { 'application/x-www-form-urlencoded': Form, 'application/json': Form } },
};

export const emailChangePages: Routes = async (app, { context }) => {
  const { db, clock } = context;
  acceptForms(app);

  app.get(PATH, page, async (request, reply) => {
    const token = fieldOf(request.query, 'token');
    const found = await findToken(db, 'changeEmail', token, clock());
    if (found === null) return sendEnded(reply);
    return sendPage(reply, 200, 'Change your e-mail address', [
      `<p>One step more: this makes ${escapeHtml(found.email)} the address of your account. You are then logged out everywhere.</p>`,
      form(`${app.basePath}${PATH}`, [hidden('token', token)], 'Change the address'),
    ]);
  });

  // It needs no CSRF token, because the form works only with the token of the link, and without a login.
  app.post(PATH, change, async (request, reply) => {
    const token = fieldOf(request.body, 'token');
    const link = await findToken(db, 'changeEmail', token, clock());
    const isChanged = link !== null && (await changeEmail(token));
    await noteAccountEvent(context, request, {
      action: 'updated',
      userId: link?.user.id ?? null,
      changes: { fields: ['email'], by: 'link' },
      failureReason: isChanged ? null : 'invalid_token',
    });
    if (!isChanged) return sendEnded(reply);
    return sendPage(reply, 200, 'Your e-mail address is changed', [
      '<p>You were logged out everywhere.</p>',
      links([[`${app.basePath}/auth/login`, 'Log in with the new address']]),
    ]);
  });

  function sendEnded(reply: FastifyReply): FastifyReply {
    return sendPage(reply, 400, 'This link does not work', [
      '<p>It has ended or was used, or the address is taken.</p>',
      links([[`${app.basePath}/account`, 'Your account']]),
    ]);
  }

  /** @returns false if the link has ended, or the address was taken meanwhile */
  async function changeEmail(token: string): Promise<boolean> {
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
};
