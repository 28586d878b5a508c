/** The page behind the link of an invite: one form, which depends on whether the address has an account. */

import { alert, type Field, field, form, hidden } from '#api/http/page-form.ts';
import { escapeHtml } from '#shared/page.ts';
import type { OpenInvite } from './store.ts';

export interface InvitePage {
  readonly invite: OpenInvite;
  readonly token: string;
  /** The hidden field with our CSRF token. */
  readonly protection: string;
  readonly basePath: string;
  /** `new`: no account yet; `mine`: its owner is logged in; `known`: nobody or another person is logged in. */
  readonly account: 'new' | 'mine' | 'known';
  /** The other user who is logged in; null if there is none. */
  readonly otherEmail: string | null;
  /** The problems of the submitted form: one sentence, and sentences by field. */
  readonly problem: { readonly text: string; readonly fields: Readonly<Record<string, string>> } | null;
  readonly name: string;
}

export const newAccountFields: readonly Field[] = [
  { name: 'name', label: 'Your name', type: 'text', autocomplete: 'name' },
  {
    name: 'password',
    label: 'Choose a password',
    type: 'password',
    autocomplete: 'new-password',
    hint: '8 to 128 characters, with an upper-case letter and a digit',
  },
];

/** @returns the parts of the page, HTML */
export function inviteParts(page: InvitePage): readonly string[] {
  const { invite, problem, otherEmail } = page;
  return [
    ...(problem === null ? [] : [alert(escapeHtml(problem.text))]),
    `<p>${escapeHtml(invite.inviterName)} invites ${escapeHtml(invite.email)} to ${escapeHtml(invite.organizationName)}, as ${invite.role}.</p>`,
    ...(otherEmail === null ? [] : [`<p>You are logged in as ${escapeHtml(otherEmail)}.</p>`]),
    ...formsOf(page),
  ];
}

function formsOf({
  account,
  basePath,
  invite,
  name,
  problem,
  protection,
  token,
}: InvitePage): readonly string[] {
  const accept = `${basePath}/api/auth/accept-invite`;
  const carried = [protection, hidden('token', token)];
  const error = (of: string): string | undefined => problem?.fields[of];
  switch (account) {
    case 'mine':
      return [form(accept, carried, 'Accept the invitation')];
    case 'new':
      return [
        form(
          accept,
          [
            ...carried,
            ...newAccountFields.map((one) =>
              field({ ...one, value: one.type === 'text' ? name : undefined, error: error(one.name) }),
            ),
          ],
          'Create the account and accept',
        ),
      ];
    case 'known':
      return [
        '<p>This address has an account. Log in with it to accept.</p>',
        form(
          `${basePath}/api/auth/callback/credentials`,
          [
            protection,
            hidden('email', invite.email),
            hidden('callbackUrl', `${basePath}/invite?token=${encodeURIComponent(token)}`),
            field({
              name: 'password',
              label: 'Password',
              type: 'password',
              autocomplete: 'current-password',
            }),
          ],
          'Log in',
        ),
      ];
  }
}
