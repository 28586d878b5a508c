/**
 * The page behind the link in a verification mail. It has a button, because programs that only open links must not use
 * them up. There are two ways: the password of the sign-up, or a new one for people who did not sign up themselves. A link
 * of the operator has only the second.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '#api/context.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, type Field, field, form, hidden, links } from '#api/http/page-form.ts';
import { escapeHtml } from '#shared/page.ts';
import { newPassword } from './account-forms.ts';
import { fieldOf, targetIn } from './form.ts';
import { texts } from './login.ts';
import { protect } from './protection.ts';
import { findToken } from './store.ts';

const TOKEN_LENGTH_MAX = 500;
const NAME_LENGTH_MAX = 250;

export const choiceFields: readonly Field[] = [
  { name: 'name', label: 'Name', type: 'text', autocomplete: 'name' },
  { ...newPassword, name: 'newPassword', label: 'New password' },
];

/** Messages for refusals after which the same link may still work. */
const problems: ReadonlyMap<string, string> = new Map([
  [texts.passwordNeeded, 'Enter the password of the sign-up, or choose another one below.'],
  [texts.wrongPassword, 'This is not the password of the sign-up. Try again, or choose another one below.'],
  [texts.tooManyPasswords, 'There were too many wrong passwords. Choose another one below.'],
]);

export function isRetryable(text: string): boolean {
  return problems.has(text);
}

interface Shown {
  readonly status: number;
  readonly problem: string;
  /** Messages by the names of the fields for a new password. */
  readonly errors: Readonly<Record<string, string>>;
}

/** @param given the query of the address, or the submitted form */
export async function sendVerifyPage(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  given: unknown,
  { status = 200, problem = '', errors = {} }: Partial<Shown> = {},
): Promise<FastifyReply> {
  const { basePath } = reply.server;
  const { config, db, clock } = context;
  const { publicUrl } = config;
  const token = fieldOf(given, 'token').slice(0, TOKEN_LENGTH_MAX);
  const link = await findToken(db, 'verifyEmail', token, clock());
  const action = `${basePath}/api/auth/callback/token`;
  const carried = [
    protect(context, request, reply),
    hidden('callbackUrl', targetIn(given, publicUrl)),
    hidden('token', token),
  ];
  const password: Field = {
    name: 'password',
    label: 'Password',
    type: 'password',
    autocomplete: 'current-password',
    error: problem === texts.wrongPassword ? 'Is this the password of the sign-up?' : undefined,
  };
  const name = fieldOf(given, 'name').slice(0, NAME_LENGTH_MAX);
  return sendPage(reply, status, 'Confirm your e-mail address', [
    ...(problem === '' ? [] : [alert(escapeHtml(problems.get(problem) ?? problem))]),
    ...(link !== null && link.choice === null
      ? ['<p>One step more: choose a password. This logs you in.</p>']
      : [
          '<p>One step more: give the password that you chose when you signed up. This confirms that the address is yours, and logs you in.</p>',
          form(action, [...carried, field(password)], 'Confirm and log in'),
          '<h2>You did not choose a password, or do not know it?</h2>',
          '<p>Choose one. It takes the place of every password that was given with this address at sign-up.</p>',
        ]),
    form(
      action,
      [
        ...carried,
        ...choiceFields.map((one) =>
          field({ ...one, value: one.name === 'name' ? name : undefined, error: errors[one.name] }),
        ),
      ],
      'Choose this password and log in',
      'plain',
    ),
    links([
      [`${basePath}/auth/verification-requested`, 'Ask for another mail'],
      [`${basePath}/auth/forgot-password`, 'Forgot your password?'],
    ]),
  ]);
}
