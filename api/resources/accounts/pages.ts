/**
 * The pages of the login and of the mails about an account. Operators with a front end of their own serve these paths
 * there instead.
 *
 * Callers: anybody.
 */
import type { Context, Routes } from '#api/context.ts';
import { forbidden, TOO_MANY_REQUESTS } from '#api/errors.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, type Field, links, notice } from '#api/http/page-form.ts';
import { escapeHtml } from '#shared/page.ts';
import { type Form, fieldOf, missingServer, SIGN_UP_PATH, sendForm } from './form.ts';
import { texts } from './login.ts';

const email: Field = { name: 'email', label: 'E-mail', type: 'email', autocomplete: 'email' };
const newPassword: Field = {
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'new-password',
  hint: '8 to 128 characters, with an upper-case letter and a digit',
};
const person: Field = { name: 'name', label: 'Name', type: 'text', autocomplete: 'name' };
const logIn = ['/auth/login', 'Log in'] as const;
const forgotten = ['/auth/forgot-password', 'Forgot your password?'] as const;
const another = ['/auth/verification-requested', 'Ask for another mail'] as const;
const signUp = [SIGN_UP_PATH, 'Create an account'] as const;

const loginForm: Form = {
  path: '/auth/login',
  action: '/api/auth/callback/credentials',
  title: 'Log in',
  lead: '',
  fields: [
    { ...email, autocomplete: 'username' },
    { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' },
  ],
  hidden: ['callbackUrl'],
  submit: 'Log in',
  isMailed: false,
  links: [forgotten, signUp],
};

const signUpForm: Form = {
  path: SIGN_UP_PATH,
  action: '/api/auth/signup',
  title: 'Create an account',
  lead: '<p>We send a mail to your address. Its link confirms that the address is yours.</p>',
  fields: [person, email, newPassword],
  hidden: [],
  submit: 'Create the account',
  isMailed: true,
  links: [logIn, forgotten],
};

const verificationForm: Form = {
  path: '/auth/verification-requested',
  action: '/api/auth/resend-verification',
  title: 'Confirm your e-mail address',
  lead: '<p>Open the link in our mail; it serves for a day. Is there no mail? Look among the spam, or let us send another one.</p>',
  fields: [email],
  hidden: [],
  submit: 'Send another mail',
  isMailed: true,
  links: [logIn, forgotten],
};

/** It has a button, because programs that only open links must not use them up. */
const verifyForm: Form = {
  path: '/auth/verify',
  action: '/api/auth/callback/token',
  title: 'Confirm your e-mail address',
  lead: '<p>One step more: give your name, and choose a password. This confirms that the address is yours, and logs you in.</p>',
  fields: [person, newPassword],
  hidden: ['token', 'callbackUrl'],
  submit: 'Confirm and log in',
  isMailed: false,
  links: [another, forgotten],
};

const forgotForm: Form = {
  path: '/auth/forgot-password',
  action: '/api/auth/forgot-password',
  title: 'Forgot your password?',
  lead: '<p>We send you a mail with a link to choose a new one.</p>',
  fields: [email],
  hidden: [],
  submit: 'Send the mail',
  isMailed: true,
  links: [logIn],
};

const resetForm: Form = {
  path: '/auth/forgot-password/reset',
  action: '/api/auth/reset-password',
  title: 'Choose a new password',
  lead: '<p>You are logged out everywhere when it is changed.</p>',
  fields: [{ ...newPassword, label: 'New password' }],
  hidden: ['token'],
  submit: 'Change the password',
  isMailed: false,
  links: [['/auth/forgot-password', 'Ask for another link'], logIn],
};

export const forms = [loginForm, signUpForm, verificationForm, verifyForm, forgotForm, resetForm] as const;

/** The pages that follow a form that was taken, by the route of the form. */
export const nextPages: Readonly<Record<string, string>> = {
  [signUpForm.action]: `${verificationForm.path}?notice=signed-up`,
  [verificationForm.action]: `${verificationForm.path}?notice=sent`,
  [forgotForm.action]: '/auth/forgot-password/email-sent',
  [resetForm.action]: `${loginForm.path}?notice=password-changed`,
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
  [
    'password-changed',
    'Your password is changed, and you were logged out everywhere. Log in with the new one.',
  ],
  ['signed-out', 'You are logged out.'],
]);

/** Returns fixed texts only, so that a link cannot put its own words on a page. @returns HTML */
export function saidOf(error: string, basePath: string): string {
  const ask = `<a href="${basePath}${another[0]}">ask for another mail</a>`;
  switch (error) {
    case texts.unverified:
      return alert(
        `Your e-mail address is not confirmed yet. Open the link in the mail that we sent, or ${ask}.`,
      );
    case texts.invalidToken:
      return alert(`This link has ended, or a newer one was sent. Please ${ask}.`);
    case texts.alreadyVerified:
      return notice(
        `Your e-mail address is confirmed already. You can <a href="${basePath}${logIn[0]}">log in</a>.`,
      );
    case texts.invalid:
      return alert('The e-mail address or the password is wrong.');
    case texts.sessionRequired:
      return alert('Your session has ended. Please log in again.');
    case texts.passwordNeeded:
    case texts.inactive:
    case TOO_MANY_REQUESTS:
      return alert(escapeHtml(error));
    default:
      return alert('This did not work. Please try again.');
  }
}

export const accountPages: Routes = async (app, { context }) => {
  const { basePath } = app;

  for (const shown of forms) {
    app.get(shown.path, { schema: { hide: true } }, async (request, reply) => {
      if (shown === signUpForm) checkOpen(context);
      const error = fieldOf(request.query, 'error');
      const news = notices.get(fieldOf(request.query, 'notice'));
      const message = news === undefined ? '' : notice(news);
      return sendForm(context, request, reply, shown, request.query, {
        message: error === '' ? message : saidOf(error, basePath),
      });
    });
  }

  app.get('/auth/forgot-password/email-sent', { schema: { hide: true } }, async (_request, reply) =>
    sendPage(reply, 200, 'Look into your mailbox', [
      ...missingServer(context),
      '<p>If this address has an account, a mail is on its way, unless it got five within the last hour. Its link serves for an hour. If none arrives, look among the spam, and check the address that you gave.</p>',
      links([
        [`${basePath}${forgotForm.path}`, 'Ask again'],
        [`${basePath}${loginForm.path}`, 'Log in'],
      ]),
    ]),
  );
};

/**
 * Everybody may sign up, or nobody. An organization without people is no exception: the operator adds people with
 * `npm run people`, and whoever signs up gets a new organization.
 *
 * @throws ApiError forbidden
 */
export function checkOpen({ config }: Pick<Context, 'config'>): void {
  if (!config.isSignupEnabled)
    throw forbidden('Sign-up is closed on this server. Ask its operator for an account.');
}
