/**
 * Accepts mails and sends them: leases mails that are due, sends them, and records the result. Several processes may do
 * so at once. If one dies between sending and recording, the mail arrives twice. No mail gets lost.
 *
 * If the server refuses every mail (SenderRefused), all of them wait. After a pause, one mail tests whether that has
 * changed.
 */
import type { Database, Timestamp } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { STEP_MS, watchClock } from '#api/work/clock-step.ts';
import { type QueueRunner, startQueueRunner } from '#api/work/queue-runner.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
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
import { insertMail, type LeasedMail, leaseMails, mendMails, updateMail } from './outbox.ts';

/** How often the table is read for mails whose pause is over, and for mails of other processes. */
const POLL_MS: Millis = 5_000;
const BATCH = 5;
/** An attempt ends after this time, which is before its lease ends. */
const ATTEMPT_TIMEOUT_MS: Millis = 60_000;
/** How long closing waits for attempts in progress. An attempt that is cut off is repeated when its lease is over. */
const STOP_TIMEOUT_MS: Millis = 5_000;
const LEASE_MS: Millis = 2 * ATTEMPT_TIMEOUT_MS;

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
  /** Call it when there may be something to send. */
  wake(): void;
  start(): void;
  /** Sends everything that is due, once. Resolves when each mail has been tried. */
  sendDue(): Promise<void>;
  /** Stops, and waits a bounded time for attempts in progress. */
  close(): Promise<void>;
}

interface MailerOptions {
  readonly db: Database;
  /** Sends mails. null if nothing is sent, and mails stay in the table for the operator to read. */
  readonly transport: MailTransport | null;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: MailerLog;
}

export function createMailer({ db, transport, clock, random, log }: MailerOptions): Mailer {
  let runner: QueueRunner | null = null;

  /** Refusals of every mail in a row, and the time until which none is tried. */
  const refusal = { count: 0, pausedUntil: 0 };
  const now = (): Timestamp => toTimestamp(clock());
  const wasSetBack = watchClock(clock);
  let hasMended = false;

  /** At the start only new mails tell that the clock was set back before; later it concerns all that wait. */
  const mend = async (): Promise<void> => {
    const time = clock();
    const createdAfter = hasMended ? 0 : time + STEP_MS;
    await mendMails(db, { now: time, pauseMs: LEASE_MS, createdAfter });
    hasMended = true;
    refusal.pausedUntil = 0;
  };

  const attempt = async (mail: LeasedMail, to: MailTransport): Promise<void> => {
    const { id, kind, attempts } = mail;
    try {
      if (attempts > ATTEMPTS_MAX) return await park(mail, 'the last attempt did not end');
      await within(ATTEMPT_TIMEOUT_MS, to.send(mail));
      refusal.count = 0;
      await updateMail(db, id, { status: 'sent', body: '', settledAt: now(), lastError: null });
      log.info({ mailId: id, kind, attempts }, 'a mail was sent');
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (error instanceof SenderRefused) return keep(mail, reason);
      if (error instanceof MailRefused) refusal.count = 0;
      if (error instanceof MailRefused || attempts >= ATTEMPTS_MAX) return park(mail, reason);
      const pauseMs = pauseAfter(attempts, chance(random));
      await updateMail(db, id, { nextAttemptAt: toTimestamp(clock() + pauseMs), lastError: reason });
      log.warn({ mailId: id, kind, attempts, reason, pauseMs }, 'a mail was not sent; this is tried again');
    }
  };

  const park = async ({ id, kind, attempts }: LeasedMail, reason: string): Promise<void> => {
    await updateMail(db, id, { status: 'parked', settledAt: now(), lastError: reason });
    log.error(
      { mailId: id, kind, attempts, reason },
      "a mail is parked; fix the cause, then set its status to 'pending' in mailOutbox",
    );
  };

  const keep = async (mail: LeasedMail, reason: string): Promise<void> => {
    const time = clock();
    // The first of several mails that were tried together has logged it.
    if (time >= refusal.pausedUntil) {
      refusal.count += 1;
      const pauseMs = senderPauseAfter(refusal.count);
      refusal.pausedUntil = time + pauseMs;
      log.error({ reason, pauseMs }, `the mail server refuses every mail (${reason}); mails wait`);
    }
    if (time - Date.parse(mail.createdAt) > SENDER_REFUSED_MS_MAX) return park(mail, reason);
    // The attempt does not count: the mail waits as if it had not been tried.
    const attempts = mail.attempts - 1;
    const nextAttemptAt = toTimestamp(refusal.pausedUntil);
    await updateMail(db, mail.id, { attempts, nextAttemptAt, lastError: reason });
  };

  const sendAll = async (isStopping: () => boolean): Promise<void> => {
    if (transport === null) return;
    if (wasSetBack()) await mend();
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
      // Wake the runner after the transaction, because other connections do not see the row before.
      setImmediate(() => runner?.wake());
    },
    wake: () => runner?.wake(),
    start() {
      runner ??= startQueueRunner({
        pollMs: POLL_MS,
        stopTimeoutMs: STOP_TIMEOUT_MS,
        onError: (error) =>
          log.error({ err: error }, 'the table mailOutbox could not be read or written; this is tried again'),
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

function chance(random: Random): number {
  return (random(1)[0] ?? 0) / 255;
}

/** @param url smtp:// or smtps://; null if mails are not sent, and nodemailer is not loaded */
export async function openTransport(url: string | null, from: MailAddress): Promise<MailTransport | null> {
  if (url === null) return null;
  const { createSmtpTransport } = await import('./smtp.ts');
  return createSmtpTransport(url, from);
}
