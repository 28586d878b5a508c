/**
 * The pages with one form: log in, sign up, confirm an address, choose a new password. Operators with a front end of their
 * own serve these paths there instead. No reply reveals whether an address has an account.
 *
 * Callers: anybody, limited by address.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { emailIn, passwordIn } from '#api/auth/password.ts';
import type { Context, Routes } from '#api/context.ts';
import { badRequest, forbidden, TOO_MANY_REQUESTS } from '#api/errors.ts';
import { alert, links, notice, sendPage } from '#api/http/page.ts';
import type { LimitName } from '#api/limits/table.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { escapeHtml } from '#shared/page.ts';
import { changeEmail, forgotPassword, resendVerification, resetPassword, signUp } from './actions.ts';
import {
  acceptForms,
  type Field,
  type Form,
  fieldOf,
  formsOf,
  requireOwnForms,
  type Shown,
  showAgain,
} from './form.ts';
import { texts } from './login.ts';

interface PageForm extends Form {
  readonly path: string;
  readonly title: string;
  /** HTML above the form. */
  readonly lead: string;
  /** Whether a mail follows. */
  readonly isMailed?: boolean;
  readonly links: readonly (readonly [path: string, text: string])[];
  readonly limit?: LimitName;
  /** Handles a form that is sent to its own page. @returns the path of the page that follows */
  readonly take?: (context: Context, request: FastifyRequest, reply: FastifyReply) => Promise<string>;
}

const email: Field = { name: 'email', label: 'E-mail', type: 'email', autocomplete: 'email' };
const newPassword: Field = {
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'new-password',
  hint: '8 to 128 characters, with an upper-case letter and a digit',
};
const person: Field = { name: 'name', label: 'Name', type: 'text', autocomplete: 'name' };

const LOGIN = '/auth/login';
const SIGN_UP = '/auth/signup';
const VERIFICATION = '/auth/verification-requested';
const FORGOT = '/auth/forgot-password';
const RESET = `${FORGOT}/reset`;
const CHANGE = '/verify-email-change';

const logIn = [LOGIN, 'Log in'] as const;
const forgotten = [FORGOT, 'Forgot your password?'] as const;
const another = [VERIFICATION, 'Ask for another mail'] as const;

const loginForm: PageForm = {
  path: LOGIN,
  action: '/api/auth/callback/credentials',
  title: 'Log in',
  lead: '',
  fields: [
    { ...email, autocomplete: 'username' },
    { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' },
  ],
  hidden: ['callbackUrl'],
  submit: 'Log in',
  links: [forgotten, another, [SIGN_UP, 'Create an account']],
};

const signUpForm: PageForm = {
  path: SIGN_UP,
  action: SIGN_UP,
  title: 'Create an account',
  lead: '<p>We send a mail to your address. Its link confirms that the address is yours.</p>',
  fields: [person, email, newPassword],
  submit: 'Create the account',
  isMailed: true,
  links: [logIn, forgotten],
  limit: 'auth.signup',
  async take(context, request) {
    const { body } = request;
    checkOpen(context);
    await signUp(context, {
      name: plainName(fieldOf(body, 'name')),
      email: emailIn(fieldOf(body, 'email')),
      password: passwordIn(fieldOf(body, 'password')),
    });
    return `${VERIFICATION}?notice=sent`;
  },
};

const verificationForm: PageForm = {
  path: VERIFICATION,
  action: VERIFICATION,
  title: 'Confirm your e-mail address',
  lead: '<p>Open the link in our mail; it serves for a day. Is there no mail? Look among the spam, or let us send another one.</p>',
  fields: [email],
  submit: 'Send another mail',
  isMailed: true,
  links: [logIn, forgotten],
  limit: 'auth.verifyEmail',
  async take(context, { body }, reply) {
    resendVerification(context, reply, emailIn(fieldOf(body, 'email')));
    return `${VERIFICATION}?notice=sent`;
  },
};

/** It has a button, because programs that only open links must not use them up. */
const verifyForm: PageForm = {
  path: '/auth/verify',
  action: '/api/auth/callback/token',
  title: 'Confirm your e-mail address',
  lead: '<p>One step more: give your name, and choose a password. This confirms that the address is yours, and logs you in.</p>',
  fields: [person, newPassword],
  hidden: ['token', 'callbackUrl'],
  submit: 'Confirm and log in',
  links: [another, forgotten],
};

const forgotForm: PageForm = {
  path: FORGOT,
  action: FORGOT,
  title: 'Forgot your password?',
  lead: '<p>We send you a mail with a link to choose a new one. The link serves for an hour.</p>',
  fields: [email],
  submit: 'Send the mail',
  isMailed: true,
  links: [logIn],
  limit: 'auth.forgotPassword',
  async take(context, { body }, reply) {
    forgotPassword(context, reply, emailIn(fieldOf(body, 'email')));
    return `${FORGOT}?notice=sent`;
  },
};

const resetForm: PageForm = {
  path: RESET,
  action: RESET,
  title: 'Choose a new password',
  lead: '<p>You are logged out everywhere when it is changed.</p>',
  fields: [{ ...newPassword, label: 'New password' }],
  hidden: ['token'],
  submit: 'Change the password',
  links: [[FORGOT, 'Ask for another link'], logIn],
  async take(context, request) {
    const token = fieldOf(request.body, 'token');
    const password = passwordIn(fieldOf(request.body, 'password'));
    if (!(await resetPassword(context, request, { token, password })))
      throw badRequest('This link has ended or was used. Please ask for another one.');
    return `${LOGIN}?notice=password-changed`;
  },
};

const changeForm: PageForm = {
  path: CHANGE,
  action: CHANGE,
  title: 'Change your e-mail address',
  lead: '<p>One step more: the address that got our mail becomes that of your account. You are then logged out everywhere.</p>',
  fields: [],
  hidden: ['token'],
  submit: 'Change the address',
  links: [['/account', 'Your account']],
  async take(context, request) {
    if (!(await changeEmail(context, request, fieldOf(request.body, 'token'))))
      throw badRequest('This link has ended or was used, or the address is taken.');
    return `${LOGIN}?notice=email-changed`;
  },
};

const forms = [loginForm, signUpForm, verificationForm, verifyForm, forgotForm, resetForm, changeForm];

export const accountPages: Routes = async (app, { context }) => {
  acceptForms(app);
  requireOwnForms(app, context);
  const byPath = new Map(forms.map((form) => [form.path, form]));
  showAgain(app, (request, reply, shown) => {
    const form = byPath.get(request.routeOptions.url ?? '') ?? loginForm;
    return sendForm(context, reply, form, shown);
  });
  for (const form of forms) {
    const { path, limit = null, take } = form;
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      if (form === signUpForm) checkOpen(context);
      const { query } = request;
      return sendForm(context, reply, form, { given: query, message: saidIn(query) });
    });
    if (take === undefined) continue;
    app.post(path, { schema: { hide: true }, config: { limit } }, async (request, reply) =>
      reply.redirect(app.basePath + (await take(context, request, reply)), 303),
    );
  }
};

/** Sends the page of a form that has been refused by the login. */
export function sendLoginForm(context: Context, reply: FastifyReply, shown: Shown): FastifyReply {
  const form = reply.request.routeOptions.url === verifyForm.action ? verifyForm : loginForm;
  return sendForm(context, reply, form, shown);
}

function sendForm(
  context: Context,
  reply: FastifyReply,
  form: PageForm,
  { status = 200, message = '', given, errors = {} }: Partial<Shown>,
): FastifyReply {
  const { basePath } = reply.server;
  const isShown = ([path]: readonly [string, string]) => context.config.isSignupEnabled || path !== SIGN_UP;
  return sendPage(reply, status, form.title, [
    message,
    form.isMailed && !context.mailer.hasServer ? alert(NO_SERVER) : '',
    form.lead,
    formsOf(context, reply, { given, errors })(form),
    links(form.links.filter(isShown).map(([path, text]) => [basePath + path, text])),
  ]);
}

const NO_SERVER =
  'This service has no mail server (SMTP_URL), so no mail arrives. Its operator finds the mail in the table mailOutbox.';

const notices: ReadonlyMap<string, string> = new Map([
  ['sent', 'If this address can have a mail, it is on its way, unless it got five within the last hour.'],
  [
    'password-changed',
    'Your password is changed, and you were logged out everywhere. Log in with the new one.',
  ],
  [
    'email-changed',
    'Your e-mail address is changed, and you were logged out everywhere. Log in with the new one.',
  ],
  ['signed-out', 'You are logged out.'],
  ['log-in', 'Please log in.'],
  ['mailed', 'If the address can be used, a mail with a link is on its way to it.'],
  ['revoked', 'The key is revoked.'],
]);

/** Returns the message that the address of a page names: fixed texts only, so that a link cannot bring its own. */
export function saidIn(query: unknown): string {
  const error = fieldOf(query, 'error');
  const news = notices.get(fieldOf(query, 'notice'));
  if (error === '') return news === undefined ? '' : notice(news);
  const isKnown = error === TOO_MANY_REQUESTS || Object.values<string>(texts).includes(error);
  return alert(isKnown ? escapeHtml(error) : 'This did not work. Please try again.');
}

/**
 * Everybody may sign up, or nobody. An organization without people is no exception: the operator adds people with
 * `npm run people`, and whoever signs up gets a new organization.
 *
 * @throws ApiError forbidden
 */
function checkOpen({ config }: Pick<Context, 'config'>): void {
  if (!config.isSignupEnabled)
    throw forbidden('Sign-up is closed on this server. Ask its operator for an account.');
}
