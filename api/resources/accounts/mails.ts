/** The mails of an account: their texts, and how many of them an address may get. */
import type { Context } from '#api/context.ts';
import { countRows } from '#api/db/count.ts';
import { lockName } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import type { Mail } from '#api/mail/mailer.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

/** Callers are limited by their address. This limit protects a mailbox from callers with many addresses. */
const PER_ADDRESS_MAX = 5;
const PER: Millis = 60 * 60 * 1000;

/**
 * Whether this address may get another mail of this kind. Call it before a link is created, in the transaction that
 * accepts the mail. It locks the address, so that concurrent requests count correctly.
 */
export async function mayMail(
  { clock }: Pick<Context, 'clock'>,
  trx: Database,
  { to, kind }: Pick<Mail, 'to' | 'kind'>,
): Promise<boolean> {
  await lockName(trx, `mail to ${to}`);
  const count = await countRows(
    trx
      .selectFrom('mailOutbox')
      .where('recipient', '=', to)
      .where('kind', '=', kind)
      .where('createdAt', '>', toTimestamp(clock() - PER)),
  );
  return count < PER_ADDRESS_MAX;
}

/** Accepts the mail. If the recipient recently got too many of this kind, the mail is dropped silently. */
export async function mailAccount(
  parts: Pick<Context, 'clock' | 'mailer'>,
  trx: Database,
  mail: Mail,
): Promise<void> {
  if (await mayMail(parts, trx, mail)) await parts.mailer.accept(trx, mail);
}

export function verificationLink(publicUrl: string, token: string): string {
  return `${publicUrl}/auth/verify?token=${token}`;
}

export function verificationMail(publicUrl: string, to: string, token: string): Mail {
  return {
    kind: 'verifyEmail',
    to,
    subject: 'Confirm your e-mail address',
    body: lines(
      'Welcome. Open this link within a day to confirm your address and log in:',
      verificationLink(publicUrl, token),
      'You choose your password there.',
      'If you did not sign up, ignore this mail: nothing happens without the link.',
    ),
  };
}

/**
 * Writes a mail to the owner of a taken address after a sign-up with it. Only the owner learns that there is an
 * account.
 */
export function accountExistsMail(publicUrl: string, to: string): Mail {
  return {
    kind: 'accountExists',
    to,
    subject: 'You already have an account',
    body: lines(
      'Somebody, perhaps you, signed up with this address. It has an account already. Log in here:',
      `${publicUrl}/auth/login`,
      `If you forgot your password, choose a new one: ${publicUrl}/auth/forgot-password`,
      'If it was not you, ignore this mail.',
    ),
  };
}

export function resetMail(publicUrl: string, to: string, token: string): Mail {
  return {
    kind: 'resetPassword',
    to,
    subject: 'Choose a new password',
    body: lines(
      'Open this link within an hour to choose a new password:',
      `${publicUrl}/auth/forgot-password/reset?token=${token}`,
      'If you did not ask for it, ignore this mail: your password stays as it is.',
    ),
  };
}

export function changeEmailMail(publicUrl: string, to: string, token: string): Mail {
  return {
    kind: 'changeEmail',
    to,
    subject: 'Confirm your new e-mail address',
    body: lines(
      'Open this link within a day to make this the address of your account. You are then logged out everywhere:',
      `${publicUrl}/verify-email-change?token=${token}`,
      'If you did not ask for it, ignore this mail: nothing happens without the link.',
    ),
  };
}

/** Writes a mail to the old address, so that an owner who did not request the change learns of it at once. */
export function emailChangedMail(to: string): Mail {
  return {
    kind: 'emailChanged',
    to,
    subject: 'Your e-mail address was changed',
    body: lines(
      'Your account now has another e-mail address, and everybody was logged out of it.',
      'If this was not you, tell the administrator of this service at once.',
    ),
  };
}

function lines(...paragraphs: readonly string[]): string {
  return `${paragraphs.join('\n\n')}\n`;
}
