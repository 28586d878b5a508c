/**
 * The pages of an account, and those that links in mails lead to. They need no script: their forms are those of
 * `/api/auth`, and whoever has a front end of their own serves these paths there instead.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Context } from '#api/context.ts';
import { htmlPage } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { form, hidden, links, notice } from '#api/http/page-form.ts';
import { accountForms, sendForm, signUpForm } from './account-forms.ts';
import { fieldOf } from './form.ts';
import { ACCOUNT_PATH } from './login-page.ts';
import { protect } from './protection.ts';
import { refuseWhileClosed } from './signup.ts';

export { escapeHtml, sendPage } from '#api/http/page.ts';

const page = { schema: { response: { 200: htmlPage('A page.') } } };
const TOKEN_LENGTH_MAX = 500;

export const accountPages: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { publicUrl } = context.config;
  const { basePath } = app;

  for (const shown of accountForms) {
    const hooks = shown === signUpForm ? { ...page, onRequest: refuseWhileClosed(context) } : page;
    app.get(shown.path, hooks, async (request, reply) => {
      const news = notices.get(fieldOf(request.query, 'notice'));
      const message = news === undefined ? '' : notice(news);
      return sendForm(context, request, reply, shown, request.query, { message });
    });
  }

  app.get('/auth/forgot-password/email-sent', page, async (_request, reply) =>
    sendPage(reply, 200, 'Look into your mailbox', [
      '<p>If this address has an account, a mail is on its way. Its link serves for an hour. If none arrives, look among the spam, and check the address that you gave.</p>',
      links([
        [`${basePath}/auth/forgot-password`, 'Ask again'],
        [`${basePath}/auth/login`, 'Log in'],
      ]),
    ]),
  );

  // A button, because programs that merely look at links must not open them.
  app.get('/auth/verify', page, async (request, reply) =>
    sendPage(reply, 200, 'Confirm your e-mail address', [
      '<p>One step more: this confirms that the address is yours, and logs you in.</p>',
      form(
        `${basePath}/api/auth/callback/token`,
        [
          protect(context, request, reply),
          hidden('callbackUrl', `${publicUrl}${ACCOUNT_PATH}`),
          hidden('token', fieldOf(request.query, 'token').slice(0, TOKEN_LENGTH_MAX)),
        ],
        'Confirm and log in',
      ),
      links([[`${basePath}/auth/verification-requested`, 'Ask for another mail']]),
    ]),
  );
};

/** What brought somebody here, by the `notice` of the address. */
const notices: ReadonlyMap<string, string> = new Map([
  ['signed-up', 'Almost done: a mail is on its way to you.'],
  ['sent', 'If this address waits for its confirmation, another mail is on its way.'],
]);
