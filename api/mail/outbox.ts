/** The table `mailOutbox`. A mail is accepted, then leased, then sent, tried again, or parked. */
import { deletingWorkspaces } from '#api/db/deleting.ts';
import { unlocked } from '#api/db/locks.ts';
import type { Database, MailOutboxTable, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import type { Mail, OutgoingMail } from './mail.ts';

/** How long sent and parked mails are kept, and unsent ones where no server is configured. */
const RETENTION_MS: Millis = 30 * 24 * 60 * 60 * 1000;
const ERROR_LENGTH_MAX = 500;

export interface LeasedMail extends OutgoingMail {
  /** Number of attempts, including the current one. */
  readonly attempts: number;
  readonly createdAt: Timestamp;
}

export async function insertMail(db: Database, mail: Mail, now: Millis, random: Random): Promise<string> {
  const id = newId(random);
  const { to, ...content } = mail;
  await db
    .insertInto('mailOutbox')
    .values({
      replyTo: null,
      workspaceId: null,
      ...content,
      id,
      createdAt: toTimestamp(now),
      recipient: to,
      status: 'pending',
      attempts: 0,
      nextAttemptAt: toTimestamp(now),
      settledAt: null,
      lastError: null,
    })
    .execute();
  return id;
}

/**
 * Leases mails that are due, oldest first. No other process gets them before the lease is over. The attempt counts
 * from here, so a mail that crashes the process does so a bounded number of times.
 */
export async function leaseMails(
  db: Database,
  options: { readonly now: Millis; readonly leaseMs: Millis; readonly limit: number },
): Promise<readonly LeasedMail[]> {
  const now = toTimestamp(options.now);
  const due = db
    .selectFrom('mailOutbox')
    .select('id')
    .where('status', '=', 'pending')
    .where('nextAttemptAt', '<=', now)
    .where(({ eb, or }) =>
      or([eb('workspaceId', 'is', null), eb('workspaceId', 'not in', deletingWorkspaces(db))]),
    )
    .orderBy('nextAttemptAt')
    .orderBy('id')
    .limit(options.limit);
  const rows = await db
    // Mails that no other process is leasing at this moment.
    .with('due', () => unlocked(db, due))
    .updateTable('mailOutbox')
    .set((row) => ({
      attempts: row('attempts', '+', 1),
      nextAttemptAt: toTimestamp(options.now + options.leaseMs),
    }))
    .where('id', 'in', (from) => from.selectFrom('due').select('due.id'))
    .where('status', '=', 'pending')
    .where('nextAttemptAt', '<=', now)
    .returningAll()
    .execute();
  return rows.map(({ recipient, ...mail }) => ({ ...mail, to: recipient }));
}

/**
 * Makes mails due in a moment that wait too long, because the clock was set back. The pause is that of a lease, so that
 * attempts that are running can end.
 *
 * @param createdAfter only mails that were accepted after this
 */
export async function mendMails(
  db: Database,
  options: { readonly now: Millis; readonly pauseMs: Millis; readonly createdAfter: Millis },
): Promise<void> {
  const soon = toTimestamp(options.now + options.pauseMs);
  await db
    .updateTable('mailOutbox')
    .set({ nextAttemptAt: soon })
    .where('status', '=', 'pending')
    .where('nextAttemptAt', '>', soon)
    .where('createdAt', '>', toTimestamp(options.createdAfter))
    .execute();
}

/** Records the result of an attempt. */
export async function updateMail(
  db: Database,
  id: string,
  { lastError, ...result }: Pick<MailOutboxTable, 'lastError'> & Partial<MailOutboxTable>,
): Promise<void> {
  await db
    .updateTable('mailOutbox')
    .set({ ...result, lastError: lastError?.slice(0, ERROR_LENGTH_MAX) ?? null })
    .where('id', '=', id)
    .execute();
}

/** Kinds of mails that go to contacts. Other mails are about accounts. */
const TO_CONTACTS = ['surveyLink', 'surveyFollowUp'];

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
