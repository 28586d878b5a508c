/**
 * The e-mail address of one's own account. Asking needs a session and the password; the change happens when the link that
 * went to the new address is opened (contract auth.md §2), which needs neither.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { isTooLong, normalizeEmail } from '#api/auth/password.ts';
import { sessionOf } from '#api/auth/plugin.ts';
import { endSessionsOf } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { badRequest, invalidFields, notAuthenticated } from '#api/errors.ts';
import { fieldOf } from '#api/resources/accounts/form.ts';
import { changeEmailMail, emailChangedMail, mailAccount } from '#api/resources/accounts/mails.ts';
import { escapeHtml, sendPage } from '#api/resources/accounts/pages.ts';
import {
  deleteTokens,
  findToken,
  findUser,
  findUserByEmail,
  insertToken,
  updateUser,
} from '#api/resources/accounts/store.ts';
import { toTimestamp } from '#api/timestamps.ts';

export const profileRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, clock, random, passwords, config } = context;

  app.put(
    '/api/v1/profile/email',
    {
      schema: {
        body: Type.Object({ email: Type.String(), password: Type.String() }),
        response: { 200: Type.Object({ data: Type.Object({ success: Type.String() }) }) },
      },
      config: { credentials: 'session', limit: 'actions.emailUpdate', acceptsKeyWithoutWorkspace: true },
    },
    async (request) => {
      const { userId } = sessionOf(request);
      const { password } = request.body;
      const email = normalizeEmail(request.body.email);
      if (email === null) {
        throw invalidFields({ email: 'must be an e-mail address of at most 255 characters' });
      }
      const user = await findUser(db, userId);
      if (user === null) throw notAuthenticated();
      if (isTooLong(password) || !(await passwords.verify(password, user.passwordHash))) {
        throw invalidFields({ password: 'is not the password of this account' });
      }
      if (email === user.email) throw badRequest('This is the address of the account already');
      await db.transaction().execute(async (trx) => {
        // An address that is taken gets no mail, and the answer is the same.
        if ((await findUserByEmail(trx, email)) !== null) return;
        await deleteTokens(trx, userId, ['changeEmail']);
        const token = await insertToken(trx, { userId, purpose: 'changeEmail', email }, clock(), random);
        await mailAccount(context, trx, changeEmailMail(config.publicUrl, email, token));
      });
      return { data: { success: 'If the address can be used, a mail with a link is on its way to it' } };
    },
  );

  // Without HEAD: programs that merely look at links must not open them.
  app.get('/verify-email-change', { exposeHeadRoute: false }, async (request, reply) => {
    const isChanged = await changeEmail(fieldOf(request.query, 'token'));
    return isChanged
      ? sendPage(reply, 200, 'Your e-mail address is changed', [
          `<p>You were logged out everywhere. <a href="${escapeHtml(config.publicUrl)}/auth/login">Log in with the new address</a>.</p>`,
        ])
      : sendPage(reply, 400, 'This link does not serve', [
          '<p>It has ended or was used, or the address is taken. Ask for a new one in your profile.</p>',
        ]);
  });

  /** @returns false when the link has ended, or the address was taken meanwhile */
  async function changeEmail(token: string): Promise<boolean> {
    try {
      return await db.transaction().execute(async (trx) => {
        const found = await findToken(trx, 'changeEmail', token, clock());
        if (found === null || found.user.isActive !== 1) return false;
        const { id, email: oldEmail } = found.user;
        const now = toTimestamp(clock());
        await updateUser(trx, id, { email: found.email, emailVerified: now }, now);
        // Links that went to the old address serve no longer.
        await deleteTokens(trx, id, ['changeEmail', 'resetPassword', 'verifyEmail']);
        await endSessionsOf(trx, id);
        await mailAccount(context, trx, emailChangedMail(oldEmail));
        return true;
      });
    } catch (error) {
      if (isUniqueViolation(error)) return false;
      throw error;
    }
  }
};
