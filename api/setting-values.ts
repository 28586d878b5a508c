/**
 * Parses values of settings. Each function throws an Error with the correct form. If the value may contain a password,
 * the message does not repeat it.
 */
import { normalizeEmail, passwordProblem } from '#api/auth/password.ts';
import type { MailAddress } from '#api/mail/smtp.ts';

export function parseRedisUrl(value: string): string | null {
  if (value === '') return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') {
    throw new Error('not a Redis address; give one such as redis://127.0.0.1:6379/0, or leave it unset');
  }
  // The client would read parameters as its own options, which take precedence: one of them could make requests wait
  // for Redis.
  if ([...url.searchParams.keys()].some((name) => name !== 'family'))
    throw new Error('after the ? it takes only family=4 or family=6; in a password, ? is written %3F');
  return value;
}

export function parseSmtpUrl(value: string): string | null {
  if (value === '') return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    throw new Error('not a mail server; give one such as smtp://user:password@mail.example.com:587');
  }
  return value;
}

export function parseMailFrom(value: string): MailAddress {
  const [, name = '', inBrackets] = /^([^<>\p{Cc}]*)<([^<>]+)>$/u.exec(value) ?? [];
  const address = (inBrackets ?? value).trim();
  if (!/^[^\s@<>,;:"\\]+@[^\s@<>,;:"\\]+$/.test(address)) {
    throw new Error(`"${value}" is not a sender; give one such as Feedback <feedback@example.com>`);
  }
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address };
}

export function parsePublicUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  const isPlain =
    url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (!isPlain || !['http:', 'https:'].includes(url.protocol)) {
    throw new Error(`"${value}" is not an address; give one such as https://feedback.example.com`);
  }
  return value.replace(/\/+$/, '');
}

export function parseWorkspaceId(value: string): string | null {
  if (value === '') return null;
  if (!/^[0-9a-z]{1,64}$/.test(value)) {
    throw new Error(`"${value}" is not an id; give 1 to 64 lower-case letters and digits`);
  }
  return value;
}

export function parseApiKey(value: string): string | null {
  if (value === '') return null;
  if (!/^[\x21-\x7e]{1,200}$/.test(value)) {
    throw new Error('an API key is 1 to 200 printable ASCII characters without spaces, such as fbk_…');
  }
  return value;
}

export function parseEmail(value: string): string {
  const email = normalizeEmail(value);
  if (email === null) throw new Error(`"${value}" is not an e-mail address of at most 255 characters`);
  return email;
}

export function parsePassword(value: string): string | null {
  if (value === '') return null;
  const problem = passwordProblem(value);
  if (problem !== null) throw new Error(problem);
  return value;
}
