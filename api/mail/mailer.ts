/**
 * Mails are stored in the table `mailOutbox`, in the same transaction as the change that they are about, and sent from there.
 * So a mail that was accepted is sent, whatever happens to this process or to the mail server. If a process dies between
 * sending and recording, the mail arrives twice.
 */
import type { FastifyBaseLogger } from 'fastify';
import { sql } from 'kysely';
import { unlocked } from '#api/db/locks.ts';
import { type Leased, pauseAfter, type Queue, settle, startQueue } from '#api/db/queue.ts';
import type { Database } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';

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

export interface MailTransport {
  /**
   * Resolves when the server has accepted the mail, whose id is the same at each attempt.
   *
   * @throws MailRefused if another attempt is pointless. Any other error is worth another attempt.
   */
  send(mail: Mail & { readonly id: string }): Promise<void>;
  close(): void;
}

/** The server will never accept this mail, for instance because the address does not exist. */
export class MailRefused extends Error {}

/** How often the table is read for mails whose pause is over, and for mails of other processes. */
const POLL_MS: Millis = 5_000;
/** Mails that are sent at once. */
const PLACES = 5;
/** An attempt ends after this time, which is before its lease ends. */
const ATTEMPT_TIMEOUT_MS: Millis = 60_000;
const LEASE_MS: Millis = 2 * ATTEMPT_TIMEOUT_MS;
/** How long closing waits for attempts in progress. An attempt that is cut off is repeated when its lease is over. */
const STOP_MS: Millis = 5_000;
/** Number of attempts after which a mail is parked: it stays in the table, and only an operator can send it again. */
const ATTEMPTS_MAX = 14;
/** The first pause is 15 to 30 s, the longest three to six hours. All attempts together last about a day. */
const RETRIES = { firstMs: 15_000, maxMs: 3 * 60 * 60 * 1000, jitter: 1 };
const ERROR_LENGTH_MAX = 500;
/** How long sent and parked mails are kept, and unsent ones where no server is configured. */
const RETENTION_MS: Millis = 30 * 24 * 60 * 60 * 1000;
/** Kinds of mails that go to contacts. Other mails are about accounts. */
const TO_CONTACTS = ['surveyLink', 'surveyFollowUp'];

export interface Mailer {
  /** Whether mails are sent. If false, they stay in the table, so people get a link only if the reply shows it. */
  readonly hasServer: boolean;
  /**
   * Accepts a mail. Call it in the transaction of the change that the mail is about: either both happen or neither.
   * The mail is sent after the commit, and `accept` does not wait for that.
   */
  accept(trx: Database, mail: Mail): Promise<void>;
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
  /** null if nothing is sent, and mails stay in the table for the operator to read. */
  readonly transport: MailTransport | null;
  readonly log: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>;
}

export function createMailer(options: MailerOptions): Mailer {
  const { transport, clock, random, log } = options;
  let queue: Queue | null = null;
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
      if (transport !== null) queue ??= startMails(options, transport);
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

function startMails(options: MailerOptions, transport: MailTransport): Queue {
  const { db, clock, random, log } = options;
  return startQueue({
    db,
    clock,
    random,
    table: 'mailOutbox',
    placesMax: PLACES,
    leaseMs: LEASE_MS,
    pollMs: POLL_MS,
    stopMs: STOP_MS,
    choose: dueMails,
    attempt: async (leased) => {
      const byId = new Map(leased.map((one) => [one.id, one]));
      const rows = await db
        .selectFrom('mailOutbox')
        .selectAll()
        .where('id', 'in', [...byId.keys()])
        .execute();
      return rows.map(({ recipient, ...row }) =>
        attempt(options, transport, { ...row, ...byId.get(row.id), to: recipient }),
      );
    },
    onError: (error) =>
      log.error({ err: error }, 'the table mailOutbox could not be read or written; this is tried again'),
  });
}

async function attempt(
  { db, clock, random, log }: MailerOptions,
  transport: MailTransport,
  mail: Mail & Leased,
): Promise<void> {
  const { id: mailId, kind, attemptCount: attempts, failureCount } = mail;
  const error =
    failureCount > ATTEMPTS_MAX
      ? new MailRefused('the last attempt did not end')
      : await within(ATTEMPT_TIMEOUT_MS, transport.send(mail)).catch((thrown: Error) => thrown);
  if (error === undefined) {
    const sent = { status: 'sent', dueAt: null, body: '', lastError: null } as const;
    await settle(db, 'mailOutbox', mail, clock(), sent);
    return log.info({ mailId, kind, attempts }, 'a mail was sent');
  }
  const reason = error.message.slice(0, ERROR_LENGTH_MAX);
  if (error instanceof MailRefused || failureCount >= ATTEMPTS_MAX) {
    const parked = { status: 'parked', dueAt: null, lastError: reason } as const;
    await settle(db, 'mailOutbox', mail, clock(), parked);
    return log.error(
      { mailId, kind, attempts, reason },
      "a mail is parked; fix the cause, then set status to 'pending', failureCount to 0 and dueAt to createdAt in mailOutbox",
    );
  }
  const pauseMs = pauseAfter(failureCount, RETRIES, random);
  const again = { dueAt: toTimestamp(clock() + pauseMs), lastError: reason };
  await settle(db, 'mailOutbox', mail, clock(), again);
  log.warn({ mailId, kind, attempts, reason, pauseMs }, 'a mail was not sent; this is tried again');
}

/** @returns the id of the mail */
export async function insertMail(
  db: Database,
  { to, ...content }: Mail,
  now: Millis,
  random: Random,
): Promise<string> {
  const id = newId(random);
  const at = toTimestamp(now);
  await db
    .insertInto('mailOutbox')
    .values({
      replyTo: null,
      workspaceId: null,
      ...content,
      id,
      createdAt: at,
      updatedAt: at,
      recipient: to,
      status: 'pending',
      attemptCount: 0,
      failureCount: 0,
      dueAt: at,
      lease: null,
      lastError: null,
    })
    .execute();
  return id;
}

/** Selects mails that are due, oldest first. */
export function dueMails(now: Millis, limit: number) {
  return sql<{ readonly id: string }>`
    select "id" from "mailOutbox" where "dueAt" <= ${toTimestamp(now)} and ("workspaceId" is null
      or "workspaceId" not in (select "id" from "workspaces" where "deletingAt" is not null))
    order by "dueAt", "id" limit ${limit}`;
}

/** Deletes the mails that an account has got or waits for. @param email its address */
export async function deleteAccountMails(db: Database, email: string): Promise<void> {
  await db
    .deleteFrom('mailOutbox')
    .where('recipient', '=', email)
    .where('kind', 'not in', TO_CONTACTS)
    .execute();
}

/** Clears what sent mails tell about their recipients. Unsent ones stay, because others may have asked for them. */
export async function forgetRecipients(db: Database, addresses: readonly string[]): Promise<void> {
  if (addresses.length === 0) return;
  await db
    .updateTable('mailOutbox')
    .set({ recipient: '', subject: '' })
    .where('recipient', 'in', addresses)
    .where('kind', 'in', TO_CONTACTS)
    .where('status', '=', 'sent')
    .execute();
}

/** Deletes mails that are older than a month, sent or not. */
export async function forgetOldMails(
  db: Database,
  now: Millis,
  isStopping: () => boolean = () => false,
): Promise<void> {
  const before = toTimestamp(now - RETENTION_MS);
  await inSlices((rowsMax) => {
    const old = db.selectFrom('mailOutbox').select('id').where('createdAt', '<', before).limit(rowsMax);
    return deleteSome(db, 'mailOutbox', unlocked(db, old));
  }, isStopping);
}
