/**
 * Mails are stored in a table, in the same transaction as the change that they are about, and sent from there. So a
 * mail that was accepted is sent, whatever happens to this process or to the mail server.
 */
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
   * @throws MailRefused if another attempt is pointless. Any other error is worth another attempt.
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
