/**
 * Accepts mails and sees to it that they are sent: leases what is due, sends it, and notes what became of it. Several
 * processes may do so at once; a mail may arrive twice when one dies between sending and noting it, and never gets
 * lost.
 *
 * A server that does not take us (SenderRefused) would refuse every mail: then all of them wait, and after a pause one
 * mail finds out whether that has changed.
 */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import type { Random } from '#api/ids.ts';
import { type QueueRunner, startQueueRunner } from '#api/queue-runner.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import {
  ATTEMPTS_MAX,
  type Mail,
  type MailAddress,
  MailRefused,
  type MailTransport,
  pauseAfter,
  SENDER_REFUSED_MS_MAX,
  SenderRefused,
  senderPauseAfter,
} from './mail.ts';
import {
  insertMail,
  type LeasedMail,
  leaseMails,
  markFailed,
  markKept,
  markParked,
  markSent,
} from './outbox.ts';

/** How often the table is looked at for mails whose pause is over, and for those of other processes. */
const POLL_MS: Millis = 5_000;
/** Mails sent at once. */
const BATCH = 5;
/** Whatever a server does, an attempt is given up after this time, which is before its lease ends. */
const ATTEMPT_TIMEOUT_MS: Millis = 60_000;
/** How long closing waits for attempts that are under way. What is cut off is tried again when its lease is over. */
const STOP_TIMEOUT_MS: Millis = 5_000;
const LEASE_MS: Millis = 2 * ATTEMPT_TIMEOUT_MS;

interface MailerLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface Mailer {
  /** false: mails stay in the table, so nobody gets a link unless we show it. */
  readonly hasServer: boolean;
  /**
   * Takes responsibility for a mail. Call it inside the transaction of what the mail is about: either both happen or
   * none. It is sent right after, and `accept` does not wait for that.
   */
  accept(db: Kysely<Database>, mail: Mail): Promise<void>;
  /** There may be something to send. */
  wake(): void;
  /** Starts to send. Mails that were accepted before are sent too. */
  start(): void;
  /** Sends everything that is due, once. Resolves when each has been tried. */
  sendDue(): Promise<void>;
  /** Stops; attempts under way are waited for within a bound. */
  close(): Promise<void>;
}

interface MailerOptions {
  readonly db: Kysely<Database>;
  /** null: nothing is sent; mails stay in the table for the operator to read. */
  readonly transport: MailTransport | null;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: MailerLog;
}

export function createMailer({ db, transport, clock, random, log }: MailerOptions): Mailer {
  let runner: QueueRunner | null = null;

  /** The server does not take us: how often in a row, and until when nothing is tried. */
  const refusal = { count: 0, pausedUntil: 0 };

  const attempt = async (mail: LeasedMail, to: MailTransport): Promise<void> => {
    const { id, kind, attempts } = mail;
    try {
      if (attempts > ATTEMPTS_MAX) return await park(mail, 'the last attempt did not end');
      await within(ATTEMPT_TIMEOUT_MS, to.send(mail));
      refusal.count = 0;
      await markSent(db, id, clock());
      log.info({ mailId: id, kind, attempts }, 'a mail was sent');
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (error instanceof SenderRefused) return keep(mail, reason);
      if (error instanceof MailRefused) refusal.count = 0;
      if (error instanceof MailRefused || attempts >= ATTEMPTS_MAX) return park(mail, reason);
      const pauseMs = pauseAfter(attempts, chance(random));
      await markFailed(db, id, { error: reason, nextAttemptAt: clock() + pauseMs });
      log.warn({ mailId: id, kind, attempts, reason, pauseMs }, 'a mail was not sent; it is tried again');
    }
  };

  const park = async ({ id, kind, attempts }: LeasedMail, reason: string): Promise<void> => {
    await markParked(db, id, { error: reason, now: clock() });
    log.error(
      { mailId: id, kind, attempts, reason },
      "a mail is parked; fix the cause, then set its status to 'pending' in mailOutbox",
    );
  };

  const keep = async (mail: LeasedMail, reason: string): Promise<void> => {
    const now = clock();
    // Of mails that were tried together, the first one has said it.
    if (now >= refusal.pausedUntil) {
      refusal.count += 1;
      const pauseMs = senderPauseAfter(refusal.count);
      refusal.pausedUntil = now + pauseMs;
      log.error({ reason, pauseMs }, `the mail server does not take us (${reason}); mails wait`);
    }
    if (now - Date.parse(mail.createdAt) > SENDER_REFUSED_MS_MAX) return park(mail, reason);
    await markKept(db, mail.id, { error: reason, nextAttemptAt: refusal.pausedUntil });
  };

  /** Takes what is due in batches until nothing is left. */
  const sendAll = async (isStopping: () => boolean): Promise<void> => {
    if (transport === null) return;
    while (!isStopping() && clock() >= refusal.pausedUntil) {
      const limit = refusal.count > 0 ? 1 : BATCH;
      const mails = await leaseMails(db, { now: clock(), leaseMs: LEASE_MS, limit });
      if (mails.length === 0) return;
      await Promise.all(mails.map((mail) => attempt(mail, transport)));
    }
  };

  return {
    hasServer: transport !== null,
    async accept(trx, mail) {
      const mailId = await insertMail(trx, mail, clock(), random);
      if (transport === null) {
        log.info({ mailId, kind: mail.kind }, 'SMTP_URL is unset: a mail waits in the table mailOutbox');
      }
      // After the transaction: until then nobody else sees the row.
      setImmediate(() => runner?.wake());
    },
    wake: () => runner?.wake(),
    start() {
      runner ??= startQueueRunner({
        pollMs: POLL_MS,
        stopTimeoutMs: STOP_TIMEOUT_MS,
        onError: (error) =>
          log.error({ err: error }, 'the outbox of mails cannot be read; it is tried again'),
        async pass({ isStopping }) {
          await sendAll(isStopping);
          return false;
        },
      });
    },
    sendDue: () => sendAll(() => false),
    async close() {
      await runner?.stop();
      transport?.close();
    },
  };
}

/** From 0 to 1. */
function chance(random: Random): number {
  return (random(1)[0] ?? 0) / 255;
}

function within<T>(ms: Millis, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/**
 * @param url smtp:// or smtps://; null: mails are not sent, and nodemailer is not loaded
 */
export async function openTransport(url: string | null, from: MailAddress): Promise<MailTransport | null> {
  if (url === null) return null;
  const { createSmtpTransport } = await import('./smtp.ts');
  return createSmtpTransport(url, from);
}
