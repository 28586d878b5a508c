/** The page that the link of an invite leads to: one form, which depends on whether the address has an account. */
import { escapeHtml } from '#api/resources/accounts/pages.ts';
import type { OpenInvite } from './store.ts';

export interface InvitePage {
  readonly invite: OpenInvite;
  readonly token: string;
  readonly csrfToken: string;
  /** '' unless PUBLIC_URL has a path. */
  readonly base: string;
  readonly publicUrl: string;
  /** `new`: no account yet; `mine`: it is logged in; `known`: it is not, or somebody else is. */
  readonly account: 'new' | 'mine' | 'known';
  /** Who is logged in instead; null: nobody. */
  readonly otherEmail: string | null;
  /** What was wrong with the form that was sent: a sentence, and sentences by field. */
  readonly problem: { readonly text: string; readonly fields: Readonly<Record<string, string>> } | null;
  /** What was typed as a name. */
  readonly name: string;
}

/** @returns the parts of the page, HTML */
export function inviteParts(page: InvitePage): readonly string[] {
  const { invite, account, problem, otherEmail } = page;
  return [
    ...(problem === null ? [] : [`<p role="alert">${escapeHtml(problem.text)}</p>`]),
    `<p>${escapeHtml(invite.inviterName)} invites ${escapeHtml(invite.email)} to ${escapeHtml(invite.organizationName)}, as ${invite.role}.</p>`,
    ...(otherEmail === null ? [] : [`<p>You are logged in as ${escapeHtml(otherEmail)}.</p>`]),
    formOf(page, account),
  ];
}

function formOf(page: InvitePage, account: InvitePage['account']): string {
  const { base, csrfToken, invite, token } = page;
  const accept = `${base}/api/auth/accept-invite`;
  const proof = hidden('csrfToken', csrfToken);
  const mark = hidden('token', token);
  switch (account) {
    case 'mine':
      return form(accept, proof + mark, '', 'Accept the invitation');
    case 'new':
      return form(
        accept,
        proof + mark,
        field(page, 'name', 'Your name', 'text', 'name', page.name) +
          field(page, 'password', 'Choose a password', 'password', 'new-password', ''),
        'Create the account and accept',
      );
    case 'known':
      return `<p>This address has an account. Log in with it to accept.</p>${form(
        `${base}/api/auth/callback/credentials`,
        proof +
          hidden('email', invite.email) +
          hidden('callbackUrl', `${page.publicUrl}/invite?token=${encodeURIComponent(token)}`),
        field(page, 'password', 'Password', 'password', 'current-password', ''),
        'Log in',
      )}`;
  }
}

function field(
  { problem }: InvitePage,
  name: string,
  label: string,
  type: string,
  autocomplete: string,
  value: string,
): string {
  const wrong = problem?.fields[name];
  const hint = wrong === undefined ? '' : `<span id="${name}-problem">${escapeHtml(wrong)}</span>`;
  const described = wrong === undefined ? '' : ` aria-invalid="true" aria-describedby="${name}-problem"`;
  return `<p><label>${label} <input name="${name}" type="${type}" autocomplete="${autocomplete}" value="${escapeHtml(value)}" required${described}></label> ${hint}</p>\n`;
}

function form(action: string, fields: string, inputs: string, submit: string): string {
  return `<form method="post" action="${action}">${fields}\n${inputs}<p><button>${submit}</button></p></form>`;
}

function hidden(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
}
