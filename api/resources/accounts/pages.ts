/**
 * The pages of an account, and the pages behind links in mails. They need no script: their forms are sent to
 * `/api/auth`. Operators with a front end of their own serve these paths there instead.
 *
 * Callers: anybody.
 */
import type { Routes } from '#api/context.ts';
import { htmlPage } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { links, notice } from '#api/http/page-form.ts';
import { accountForms, missingServer, sendForm, signUpForm } from './account-forms.ts';
import { fieldOf } from './form.ts';
import { refuseWhileClosed } from './signup.ts';
import { sendVerifyPage } from './verify-page.ts';

const page = { schema: { response: { 200: htmlPage('A page.') } } };

export const accountPages: Routes = async (app, { context }) => {
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
      ...missingServer(context),
      '<p>If this address has an account, a mail is on its way, unless it got five within the last hour. Its link serves for an hour. If none arrives, look among the spam, and check the address that you gave.</p>',
      links([
        [`${basePath}/auth/forgot-password`, 'Ask again'],
        [`${basePath}/auth/login`, 'Log in'],
      ]),
    ]),
  );

  app.get('/auth/verify', page, async (request, reply) =>
    sendVerifyPage(context, request, reply, request.query),
  );
};

const notices: ReadonlyMap<string, string> = new Map([
  [
    'signed-up',
    'Almost done: a mail is on its way to you, unless your address got five within the last hour.',
  ],
  [
    'sent',
    'If this address waits for its confirmation, another mail is on its way, unless it got five within the last hour.',
  ],
]);
