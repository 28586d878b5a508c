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
   * @throws MailRefused when trying again is pointless; anything else is worth another attempt
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

/** After these the mail is parked: it stays in the table, and only an operator has it tried again. */
export const ATTEMPTS_MAX = 10;
/** The first pause; each further one is twice as long, up to six hours. Ten attempts last about a day. */
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
