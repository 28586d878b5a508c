/**
 * Mails: accepted into a table, together with whatever they are about, and sent from there. So a mail that was accepted is
 * a mail that is sent, whatever happens to this process or to the mail server in between.
 */
import type { Millis } from '#shared/clock.ts';

export interface MailAddress {
  /** '' when there is none. */
  readonly name: string;
  readonly address: string;
}

export interface Mail {
  /** What it is for, such as `verifyEmail`. Said in the log, so nothing of the caller's. */
  readonly kind: string;
  /** One address, as `normalizeEmail` returns it. */
  readonly to: string;
  readonly replyTo?: string | null;
  readonly subject: string;
  /** Plain text. */
  readonly body: string;
}

/** A mail on its way out, with the id under which it is tried again. */
export interface OutgoingMail extends Mail {
  readonly id: string;
}

/** Hands a mail to a server. */
export interface MailTransport {
  /**
   * Resolves when the server has taken responsibility for the mail.
   *
   * @throws MailRefused when trying again is pointless, SenderRefused when the mail is not to blame; anything else is
   *   worth another attempt
   */
  send(mail: OutgoingMail): Promise<void>;
  close(): void;
}

/** The server will never take this mail, for instance because the address does not exist. */
export class MailRefused extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'MailRefused';
  }
}

/**
 * The server does not take us, whatever the mail: a login, a sender address or a certificate that an operator can put
 * right. The message says what to look at.
 */
export class SenderRefused extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'SenderRefused';
  }
}

/** After these the mail is parked: it stays in the table, and only an operator has it tried again. */
export const ATTEMPTS_MAX = 14;
/** The first pause; each further one is twice as long, up to six hours. All attempts last about a day. */
const PAUSE_MS: Millis = 30_000;
const PAUSE_MS_MAX: Millis = 6 * 60 * 60 * 1000;

/**
 * How long to wait after a failed attempt.
 *
 * @param attempts that have failed, at least 1
 * @param chance from 0 to 1: spreads mails that failed together, from half the pause to the whole
 */
export function pauseAfter(attempts: number, chance: number): Millis {
  const pause = Math.min(PAUSE_MS * 2 ** (attempts - 1), PAUSE_MS_MAX);
  return Math.round(pause * (0.5 + chance / 2));
}

/** So long a mail waits for the server to take us; then it is parked. */
export const SENDER_REFUSED_MS_MAX: Millis = 7 * 24 * 60 * 60 * 1000;
const SENDER_PAUSE_MS: Millis = 60_000;
const SENDER_PAUSE_MS_MAX: Millis = 60 * 60 * 1000;

/** How long no mail at all is tried once the server refused us. @param refusals in a row, at least 1 */
export function senderPauseAfter(refusals: number): Millis {
  return Math.min(SENDER_PAUSE_MS * 2 ** (refusals - 1), SENDER_PAUSE_MS_MAX);
}
