/**
 * Mails are stored in a table, in the same transaction as the change that they are about, and sent from there. So a
 * mail that was accepted is sent, whatever happens to this process or to the mail server.
 */
import type { Millis } from '#shared/clock.ts';

export interface MailAddress {
  /** Name of the recipient; empty if there is none. */
  readonly name: string;
  readonly address: string;
}

export interface Mail {
  /** The purpose, such as `verifyEmail`. It is logged, so it must not contain data of callers. */
  readonly kind: string;
  /** The workspace that the mail is about. The mail is not sent if that is deleted before. */
  readonly workspaceId?: string | null;
  /** One address, as `normalizeEmail` returns it. */
  readonly to: string;
  readonly replyTo?: string | null;
  readonly subject: string;
  /** Plain text. */
  readonly body: string;
}

/** A mail with its id, which is the same for all attempts to send it. */
export interface OutgoingMail extends Mail {
  readonly id: string;
}

export interface MailTransport {
  /**
   * Resolves when the server has accepted the mail.
   *
   * @throws MailRefused if another attempt is pointless, SenderRefused if the mail is not the cause. Any other error is
   * worth another attempt.
   */
  send(mail: OutgoingMail): Promise<void>;
  close(): void;
}

/** The server will never accept this mail, for instance because the address does not exist. */
export class MailRefused extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'MailRefused';
  }
}

/**
 * The server refuses every mail, because of a login, a sender address or a certificate that an operator can correct.
 * The message says what to check.
 */
export class SenderRefused extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'SenderRefused';
  }
}

/** Number of attempts after which a mail is parked: it stays in the table, and only an operator can send it again. */
export const ATTEMPTS_MAX = 14;
/** The first pause. Each further one is twice as long, up to six hours. All attempts together last about a day. */
const PAUSE_MS: Millis = 30_000;
const PAUSE_MS_MAX: Millis = 6 * 60 * 60 * 1000;

/**
 * Returns the pause after a failed attempt.
 *
 * @param attempts number of failed ones, at least 1
 * @param chance from 0 to 1. Spreads mails that failed together over the second half of the pause.
 */
export function pauseAfter(attempts: number, chance: number): Millis {
  const pause = Math.min(PAUSE_MS * 2 ** (attempts - 1), PAUSE_MS_MAX);
  return Math.round(pause * (0.5 + chance / 2));
}

/** If the server refuses every mail for this time, the mail is parked. */
export const SENDER_REFUSED_MS_MAX: Millis = 7 * 24 * 60 * 60 * 1000;
const SENDER_PAUSE_MS: Millis = 60_000;
const SENDER_PAUSE_MS_MAX: Millis = 60 * 60 * 1000;

/** Returns the pause for all mails if the server refuses every mail. @param refusals number in a row, at least 1 */
export function senderPauseAfter(refusals: number): Millis {
  return Math.min(SENDER_PAUSE_MS * 2 ** (refusals - 1), SENDER_PAUSE_MS_MAX);
}
