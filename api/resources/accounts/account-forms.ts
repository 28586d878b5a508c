/**
 * The forms of an account, each on a page of its own, which send to a route of `/api/auth`. Those routes answer
 * programs with data. People get the next page, or the form again with the problem beside its field.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '#api/context.ts';
import { type ApiError, forbidden, RetryLater } from '#api/errors.ts';
import { asApiError } from '#api/http/error-handler.ts';
import { prefersHtml } from '#api/http/error-page.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, type Field, field, form, hidden, links } from '#api/http/page-form.ts';
import { escapeHtml } from '#shared/page.ts';
import { fieldOf } from './form.ts';
import { isFormOurs, protect } from './protection.ts';

const TEXT_LENGTH_MAX = 500;

interface AccountForm {
  readonly path: string;
  readonly action: string;
  readonly title: string;
  /** HTML above the form. */
  readonly lead: string;
  readonly fields: readonly Field[];
  /** Hidden fields from the address of the page, such as the token of a link. */
  readonly hidden: readonly string[];
  readonly submit: string;
  readonly next: string;
  readonly links: readonly (readonly [path: string, text: string])[];
}

const email: Field = { name: 'email', label: 'E-mail', type: 'email', autocomplete: 'email' };
export const newPassword: Field = {
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'new-password',
  hint: '8 to 128 characters, with an upper-case letter and a digit',
};
const logIn = ['/auth/login', 'Log in'] as const;
const forgotten = ['/auth/forgot-password', 'Forgot your password?'] as const;

export const signUpForm: AccountForm = {
  path: '/auth/signup',
  action: '/api/auth/signup',
  title: 'Create an account',
  lead: '<p>We send a mail to your address. Its link confirms that the address is yours.</p>',
  fields: [{ name: 'name', label: 'Name', type: 'text', autocomplete: 'name' }, email, newPassword],
  hidden: [],
  submit: 'Create the account',
  next: '/auth/verification-requested?notice=signed-up',
  links: [logIn, forgotten],
};

const verificationForm: AccountForm = {
  path: '/auth/verification-requested',
  action: '/api/auth/resend-verification',
  title: 'Confirm your e-mail address',
  lead: '<p>Open the link in our mail; it serves for a day. Is there no mail? Look among the spam, or let us send another one.</p>',
  fields: [email],
  hidden: [],
  submit: 'Send another mail',
  next: '/auth/verification-requested?notice=sent',
  links: [logIn, forgotten],
};

const forgotForm: AccountForm = {
  path: '/auth/forgot-password',
  action: '/api/auth/forgot-password',
  title: 'Forgot your password?',
  lead: '<p>We send you a mail with a link to choose a new one.</p>',
  fields: [email],
  hidden: [],
  submit: 'Send the mail',
  next: '/auth/forgot-password/email-sent',
  links: [logIn],
};

const resetForm: AccountForm = {
  path: '/auth/forgot-password/reset',
  action: '/api/auth/reset-password',
  title: 'Choose a new password',
  lead: '<p>You are logged out everywhere when it is changed.</p>',
  fields: [{ ...newPassword, label: 'New password' }],
  hidden: ['token'],
  submit: 'Change the password',
  next: '/auth/login?notice=password-changed',
  links: [['/auth/forgot-password', 'Ask for another link'], logIn],
};

export const accountForms = [signUpForm, verificationForm, forgotForm, resetForm] as const;

interface Shown {
  readonly status: number;
  readonly message: string;
  /** Messages by field name. */
  readonly errors: Readonly<Record<string, string>>;
}

/** Returns a warning for pages that promise a mail; empty if there is a mail server. */
export function missingServer({ mailer }: Pick<Context, 'mailer'>): readonly string[] {
  if (mailer.hasServer) return [];
  return [
    alert(
      'This service has no mail server (SMTP_URL), so no mail arrives. Its operator finds the mail in the table mailOutbox.',
    ),
  ];
}

/** @param given the typed values, or the query of the address */
export function sendForm(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: AccountForm,
  given: unknown,
  { status = 200, message = '', errors = {} }: Partial<Shown> = {},
): FastifyReply {
  const { basePath } = reply.server;
  return sendPage(reply, status, shown.title, [
    ...(message === '' ? [] : [message]),
    ...(shown === resetForm ? [] : missingServer(context)),
    shown.lead,
    form(
      basePath + shown.action,
      [
        protect(context, request, reply),
        ...shown.hidden.map((name) => hidden(name, fieldOf(given, name).slice(0, TEXT_LENGTH_MAX))),
        ...shown.fields.map((one) =>
          field({
            ...one,
            value: one.type === 'password' ? undefined : fieldOf(given, one.name).slice(0, TEXT_LENGTH_MAX),
            error: errors[one.name],
          }),
        ),
      ],
      shown.submit,
    ),
    links(shown.links.map(([path, text]) => [basePath + path, text])),
  ]);
}

/** Adds hooks to the routes that receive the forms. Programs get the same replies as before. */
export function answerForms(app: FastifyInstance, context: Context): void {
  const formOf = (request: FastifyRequest): AccountForm | undefined =>
    prefersHtml(request) ? accountForms.find(({ action }) => action === request.routeOptions.url) : undefined;

  app.addHook('preValidation', async (request) => {
    if (formOf(request) === undefined || isFormOurs(request, context.signer)) return;
    throw forbidden('The form was too old. Please send it again.');
  });

  app.addHook('onSend', async (request, reply, payload) => {
    const sent = formOf(request);
    if (sent === undefined || reply.statusCode !== 200) return payload;
    reply
      .code(303)
      .removeHeader('content-type')
      .header('location', app.basePath + sent.next);
    return '';
  });

  app.setErrorHandler((cause, request, reply) => {
    const sent = formOf(request);
    const error = asApiError(cause);
    if (sent === undefined || error.code === 'internal_server_error') throw cause;
    if (error instanceof RetryLater) reply.header('retry-after', error.retryAfterSeconds);
    const errors = error.code === 'invalid_fields' ? fieldErrors(sent, error) : {};
    const message = Object.keys(errors).length > 0 ? 'Please check what is marked below.' : error.message;
    return sendForm(context, request, reply, sent, request.body, {
      status: error.statusCode,
      message: alert(escapeHtml(message)),
      errors,
    });
  });
}

/** Returns messages by field name, as sentences: `must have …` becomes `Name must have …`. */
export function fieldErrors(
  { fields }: { readonly fields: readonly Pick<Field, 'name' | 'label'>[] },
  { details }: ApiError,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    fields.flatMap(({ name, label }) => {
      const text = details[name];
      if (typeof text !== 'string') return [];
      if (text === 'Required') return [[name, `${label} is required`]];
      return [[name, text.startsWith('must ') ? `${label} ${text}` : capitalized(text)]];
    }),
  );
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
