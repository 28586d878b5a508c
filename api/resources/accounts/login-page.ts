/**
 * The login page, with a message for people who were redirected back to it.
 *
 * Callers: anybody.
 */
import { sessionCookie, typedEmail } from '#api/auth/cookies.ts';
import { findSession } from '#api/auth/session.ts';
import type { Routes } from '#api/context.ts';
import { TOO_MANY_REQUESTS } from '#api/errors.ts';
import { htmlPage, redirectTo } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, ask, field, form, hidden, links, notice } from '#api/http/page-form.ts';
import { escapeHtml } from '#shared/page.ts';
import { fieldOf, onSameHost, targetIn } from './form.ts';
import { texts } from './login.ts';
import { protect } from './protection.ts';

const page = {
  schema: {
    response: { 200: htmlPage('A page.'), 302: redirectTo('the page that a logged-in person asked for') },
  },
};

export const loginPage: Routes = async (app, { context }) => {
  const { publicUrl } = context.config;
  const { basePath } = app;

  app.get('/auth/login', page, async (request, reply) => {
    const error = fieldOf(request.query, 'error');
    const isOld = fieldOf(request.query, 'csrf') === 'true';
    const news = notices.get(fieldOf(request.query, 'notice'));
    const target = targetIn(request.query, publicUrl);
    // The notices are about people who are logged out.
    if (error === '' && !isOld && (await isLoggedIn(sessionCookie(request.cookies)))) {
      return reply.redirect(onSameHost(target));
    }
    const problem = isOld ? 'The form was too old. Please try again.' : error === '' ? '' : saidOf(error);
    return sendPage(reply, 200, 'Log in', [
      ...(problem === '' ? [] : [(messages.get(error) ?? alert)(problem)]),
      ...(news === undefined ? [] : [notice(escapeHtml(news))]),
      form(
        `${basePath}/api/auth/callback/credentials`,
        [
          protect(context, request, reply),
          hidden('callbackUrl', target),
          field({
            name: 'email',
            label: 'E-mail',
            type: 'email',
            autocomplete: 'username',
            value: typedEmail(request.cookies),
            error: error === texts.invalid ? 'Is this the address of your account?' : undefined,
          }),
          field({
            name: 'password',
            label: 'Password',
            type: 'password',
            autocomplete: 'current-password',
            error: error === texts.invalid ? 'Is this its password?' : undefined,
          }),
        ],
        'Log in',
      ),
      links([
        [`${basePath}/auth/forgot-password`, 'Forgot your password?'],
        ...(context.config.isSignupEnabled
          ? [[`${basePath}/auth/signup`, 'Create an account'] as const]
          : []),
      ]),
    ]);
  });

  async function isLoggedIn(token: string | null): Promise<boolean> {
    return token !== null && (await findSession(context.db, token, context.clock)) !== null;
  }

  /** Returns fixed texts only, so that a link cannot put its own words on this page. @returns HTML */
  function saidOf(error: string): string {
    switch (error) {
      case texts.unverified:
        return `Your e-mail address is not confirmed yet. Open the link in the mail that we sent, or <a href="${basePath}/auth/verification-requested">ask for another mail</a>.`;
      case texts.invalidToken:
        return `This link has ended, or a newer one was sent. <a href="${basePath}/auth/verification-requested">Ask for another mail</a>.`;
      case texts.alreadyVerified:
        return 'Your e-mail address is confirmed already. You can log in.';
      case texts.invalid:
        return 'The e-mail address or the password is wrong.';
      case texts.sessionRequired:
        return 'Your session has ended. Log in again to go on where you were.';
      case texts.inactive:
      case TOO_MANY_REQUESTS:
        return escapeHtml(error);
      default:
        return 'This did not work. Please try again.';
    }
  }
};

/** Messages that are not about mistakes. All others are alerts. */
const messages: ReadonlyMap<string, (html: string) => string> = new Map([
  [texts.sessionRequired, ask],
  [texts.alreadyVerified, notice],
]);

const notices: ReadonlyMap<string, string> = new Map([
  [
    'password-changed',
    'Your password is changed, and you were logged out everywhere. Log in with the new one.',
  ],
  ['signed-out', 'You are logged out.'],
  ['account-deleted', 'Your account is deleted.'],
]);
