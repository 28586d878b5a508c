/** The table `mailOutbox`. A mail is accepted, then leased, then sent, tried again, or parked. */
import { type RawBuilder, sql } from 'kysely';
import { unlocked } from '#api/db/locks.ts';
import type { Leased } from '#api/db/queue.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import type { Mail, OutgoingMail } from './mail.ts';

/** How long sent and parked mails are kept, and unsent ones where no server is configured. */
const RETENTION_MS: Millis = 30 * 24 * 60 * 60 * 1000;

export interface LeasedMail extends OutgoingMail, Leased {
  readonly createdAt: Timestamp;
}

export async function insertMail(db: Database, mail: Mail, now: Millis, random: Random): Promise<string> {
  const id = newId(random);
  const { to, ...content } = mail;
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
export function dueMails(now: Millis, limit: number): RawBuilder<{ readonly id: string }> {
  return sql`
    select "id" from "mailOutbox" where "dueAt" <= ${toTimestamp(now)} and ("workspaceId" is null
      or "workspaceId" not in (select "id" from "workspaces" where "deletingAt" is not null))
    order by "dueAt", "id" limit ${limit}`;
}

/** Adds the contents. */
export async function loadMails(db: Database, leased: readonly Leased[]): Promise<readonly LeasedMail[]> {
  const ids = leased.map(({ id }) => id);
  const rows = await db.selectFrom('mailOutbox').selectAll().where('id', 'in', ids).execute();
  const byId = new Map(leased.map((one) => [one.id, one]));
  return rows.map(({ recipient, ...mail }) => ({ ...mail, ...byId.get(mail.id), to: recipient }));
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
