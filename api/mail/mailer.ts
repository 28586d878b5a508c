/**
 * Accepts mails and sends them. If a process dies between sending and recording, the mail arrives twice. No mail gets
 * lost.
 */

import { pauseAfter, type Queue, settle, startQueue } from '#api/db/queue.ts';
import type { Database, MailOutboxTable } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { type Mail, type MailAddress, MailRefused, type MailTransport } from './mail.ts';
import { dueMails, insertMail, type LeasedMail, loadMails } from './outbox.ts';

/** How often the table is read for mails whose pause is over, and for mails of other processes. */
const POLL_MS: Millis = 5_000;
/** Mails that are sent at once. */
const PLACES = 5;
/** An attempt ends after this time, which is before its lease ends. */
const ATTEMPT_TIMEOUT_MS: Millis = 60_000;
export const LEASE_MS: Millis = 2 * ATTEMPT_TIMEOUT_MS;
/** How long closing waits for attempts in progress. An attempt that is cut off is repeated when its lease is over. */
const STOP_MS: Millis = 5_000;
/** Number of attempts after which a mail is parked: it stays in the table, and only an operator can send it again. */
export const ATTEMPTS_MAX = 14;
/** The first pause is 15 to 30 s, the longest three to six hours. All attempts together last about a day. */
export const RETRIES = { firstMs: 15_000, maxMs: 3 * 60 * 60 * 1000, jitter: 1 };
const ERROR_LENGTH_MAX = 500;

interface MailerLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface Mailer {
  /** Whether mails are sent. If false, they stay in the table, so people get a link only if the reply shows it. */
  readonly hasServer: boolean;
  /**
   * Accepts a mail. Call it in the transaction of the change that the mail is about: either both happen or neither.
   * The mail is sent after the commit, and `accept` does not wait for that.
   */
  accept(db: Database, mail: Mail): Promise<void>;
  start(): void;
  /** Starts it, and resolves when each mail that is due has been tried. */
  idle(): Promise<void>;
  /** Stops, and waits a bounded time for attempts in progress. */
  close(): Promise<void>;
}

interface MailerOptions {
  readonly db: Database;
  readonly clock: Clock;
  readonly random: Random;
  /** Sends mails. null if nothing is sent, and mails stay in the table for the operator to read. */
  readonly transport: MailTransport | null;
  readonly log: MailerLog;
}

export function createMailer({ db, transport, clock, random, log }: MailerOptions): Mailer {
  let queue: Queue | null = null;

  const attempt = async (mail: LeasedMail, to: MailTransport): Promise<void> => {
    const { id, kind, attemptCount: attempts, failureCount } = mail;
    if (failureCount > ATTEMPTS_MAX) return park(mail, 'the last attempt did not end');
    try {
      await within(ATTEMPT_TIMEOUT_MS, to.send(mail));
    } catch (error) {
      return failed(mail, error);
    }
    await record(mail, { status: 'sent', dueAt: null, body: '', lastError: null });
    log.info({ mailId: id, kind, attempts }, 'a mail was sent');
  };

  const failed = async (mail: LeasedMail, error: unknown): Promise<void> => {
    const { id, kind, attemptCount: attempts, failureCount } = mail;
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof MailRefused || failureCount >= ATTEMPTS_MAX) return park(mail, reason);
    const pauseMs = pauseAfter(failureCount, RETRIES, random);
    await record(mail, { dueAt: toTimestamp(clock() + pauseMs), lastError: reason });
    log.warn({ mailId: id, kind, attempts, reason, pauseMs }, 'a mail was not sent; this is tried again');
  };

  const park = async (mail: LeasedMail, reason: string): Promise<void> => {
    const { id, kind, attemptCount: attempts } = mail;
    await record(mail, { status: 'parked', dueAt: null, lastError: reason });
    log.error(
      { mailId: id, kind, attempts, reason },
      "a mail is parked; fix the cause, then set status to 'pending', failureCount to 0 and dueAt to createdAt in mailOutbox",
    );
  };

  const record = (
    mail: LeasedMail,
    { lastError, ...result }: Partial<MailOutboxTable> & Pick<MailOutboxTable, 'dueAt' | 'lastError'>,
  ): Promise<boolean> =>
    settle(db, 'mailOutbox', mail, clock(), {
      ...result,
      lastError: lastError?.slice(0, ERROR_LENGTH_MAX) ?? null,
    });

  const start = (to: MailTransport): Queue =>
    startQueue({
      db,
      clock,
      random,
      table: 'mailOutbox',
      placesMax: PLACES,
      leaseMs: LEASE_MS,
      pollMs: POLL_MS,
      stopMs: STOP_MS,
      choose: dueMails,
      attempt: async (leased) => (await loadMails(db, leased)).map((mail) => attempt(mail, to)),
      onError: (error) =>
        log.error({ err: error }, 'the table mailOutbox could not be read or written; this is tried again'),
    });

  return {
    hasServer: transport !== null,
    async accept(trx, mail) {
      const mailId = await insertMail(trx, mail, clock(), random);
      if (transport === null) {
        log.info({ mailId, kind: mail.kind }, 'SMTP_URL is unset: a mail waits in the table mailOutbox');
      }
      // Wake the queue after the transaction, because other connections do not see the row before.
      setImmediate(() => queue?.wake());
    },
    start() {
      if (transport !== null) queue ??= start(transport);
    },
    async idle() {
      this.start();
      await queue?.idle();
    },
    async close() {
      await queue?.stop();
      transport?.close();
    },
  };
}

/** @param url smtp:// or smtps://; null if mails are not sent, and nodemailer is not loaded */
export async function openTransport(url: string | null, from: MailAddress): Promise<MailTransport | null> {
  if (url === null) return null;
  const { createSmtpTransport } = await import('./smtp.ts');
  return createSmtpTransport(url, from);
}
