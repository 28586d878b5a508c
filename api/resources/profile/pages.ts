/** The page that the link in a mail about a new address leads to: opening it changes the address of the account. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { endSessionsOf } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { htmlPage } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { links } from '#api/http/page-form.ts';
import { noteAccountEvent } from '#api/resources/accounts/account-event.ts';
import { fieldOf } from '#api/resources/accounts/form.ts';
import { emailChangedMail, mailAccount } from '#api/resources/accounts/mails.ts';
import { deleteTokens, findTokenToUse, updateUser } from '#api/resources/accounts/store.ts';
import { toTimestamp } from '#api/timestamps.ts';

const schema = {
  response: {
    200: htmlPage('A page: the address is changed.'),
    400: htmlPage('A page: the link has ended, or was used.'),
  },
};

export const emailChangePages: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, clock } = context;

  // Without HEAD: programs that merely look at links must not open them.
  app.get('/verify-email-change', { exposeHeadRoute: false, schema }, async (request, reply) => {
    const userId = await changeEmail(fieldOf(request.query, 'token'));
    if (userId !== null) {
      const changes = { fields: ['email'], by: 'link' };
      await noteAccountEvent(context, request, { action: 'updated', userId, changes });
    }
    return userId !== null
      ? sendPage(reply, 200, 'Your e-mail address is changed', [
          '<p>You were logged out everywhere.</p>',
          links([[`${app.basePath}/auth/login`, 'Log in with the new address']]),
        ])
      : sendPage(reply, 400, 'This link does not serve', [
          '<p>It has ended or was used, or the address is taken.</p>',
          links([[`${app.basePath}/account`, 'Your account']]),
        ]);
  });

  /** @returns whose it is; null when the link has ended, or the address was taken meanwhile */
  async function changeEmail(token: string): Promise<string | null> {
    try {
      return await db.transaction().execute(async (trx) => {
        const found = await findTokenToUse(trx, 'changeEmail', token, clock());
        if (found === null || found.user.isActive !== 1) return null;
        const { id, email: oldEmail } = found.user;
        const now = toTimestamp(clock());
        await updateUser(trx, id, { email: found.email, emailVerified: now }, now);
        // Links that went to the old address serve no longer.
        await deleteTokens(trx, id, ['changeEmail', 'resetPassword', 'verifyEmail']);
        await endSessionsOf(trx, id);
        await mailAccount(context, trx, emailChangedMail(oldEmail));
        return id;
      });
    } catch (error) {
      if (isUniqueViolation(error, 'users.email')) return null;
      throw error;
    }
  }
};
