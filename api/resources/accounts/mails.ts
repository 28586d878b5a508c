/** The mails of an account: their texts, and how many of them an address may get. */
import type { Context } from '#api/context.ts';
import { countRows } from '#api/db/count.ts';
import { lockName } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { insertToken, type Purpose } from './store.ts';

/** Callers are limited by their address. This limit protects a mailbox from callers with many addresses. */
const PER_ADDRESS_MAX = 5;
const PER: Millis = 60 * 60 * 1000;

type Kind = Purpose | 'accountExists' | 'emailChanged';

interface MailText {
  readonly subject: string;
  readonly paragraphs: (publicUrl: string, token: string) => readonly string[];
}

const texts: Readonly<Record<Kind, MailText>> = {
  verifyEmail: {
    subject: 'Confirm your e-mail address',
    paragraphs: (publicUrl, token) => [
      'Welcome. Open this link within a day to confirm your address and log in:',
      verificationLink(publicUrl, token),
      'You choose your password there.',
      'If you did not sign up, ignore this mail: nothing happens without the link.',
    ],
  },
  /** To the owner of a taken address after a sign-up with it. Only the owner learns that there is an account. */
  accountExists: {
    subject: 'You already have an account',
    paragraphs: (publicUrl) => [
      'Somebody, perhaps you, signed up with this address. It has an account already. Log in here:',
      `${publicUrl}/auth/login`,
      `If you forgot your password, choose a new one: ${publicUrl}/auth/forgot-password`,
      'If it was not you, ignore this mail.',
    ],
  },
  resetPassword: {
    subject: 'Choose a new password',
    paragraphs: (publicUrl, token) => [
      'Open this link within an hour to choose a new password:',
      `${publicUrl}/auth/forgot-password/reset?token=${token}`,
      'If you did not ask for it, ignore this mail: your password stays as it is.',
    ],
  },
  changeEmail: {
    subject: 'Confirm your new e-mail address',
    paragraphs: (publicUrl, token) => [
      'Open this link within a day to make this the address of your account. You are then logged out everywhere:',
      `${publicUrl}/verify-email-change?token=${token}`,
      'If you did not ask for it, ignore this mail: nothing happens without the link.',
    ],
  },
  /** To the old address, so that an owner who did not request the change learns of it at once. */
  emailChanged: {
    subject: 'Your e-mail address was changed',
    paragraphs: () => [
      'Your account now has another e-mail address, and everybody was logged out of it.',
      'If this was not you, tell the administrator of this service at once.',
    ],
  },
};

export function verificationLink(publicUrl: string, token: string): string {
  return `${publicUrl}/auth/verify?token=${token}`;
}

/**
 * Accepts a mail. If the address recently got too many of this kind, the mail is dropped silently.
 *
 * @param content whose link the mail has and for which purpose, or the kind of a mail without a link
 */
export async function mailAccount(
  { clock, config, mailer, random }: Context,
  trx: Database,
  to: string,
  content: { readonly userId: string; readonly purpose: Purpose } | { readonly kind: Kind },
): Promise<void> {
  const kind = 'purpose' in content ? content.purpose : content.kind;
  // Concurrent requests count correctly.
  await lockName(trx, `mail to ${to}`);
  const recent = trx
    .selectFrom('mailOutbox')
    .where('recipient', '=', to)
    .where('kind', '=', kind)
    .where('createdAt', '>', toTimestamp(clock() - PER));
  if ((await countRows(recent)) >= PER_ADDRESS_MAX) return;
  // A link that is not mailed would only fill the table.
  const token =
    'purpose' in content ? await insertToken(trx, { ...content, email: to }, clock(), random) : '';
  const { subject, paragraphs } = texts[kind];
  const body = `${paragraphs(config.publicUrl, token).join('\n\n')}\n`;
  await mailer.accept(trx, { kind, to, subject, body });
}
