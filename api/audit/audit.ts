/**
 * The audit log: logins, changes of accounts, deleted files, and all writes of API keys and logged-in people, whether
 * they succeed or not. The table is `auditEvents`, and AUDIT_LOG_ENABLED=1 turns it on. Rows are never changed. No
 * row contains an e-mail address, a password, a token or a key.
 *
 * Failures are counted in windows of five minutes for each account, caller or address, so that an attack does not
 * fill the disk: the first three are written, then every tenth. Without the store of the counters no failure is
 * written (fail closed); the request is answered as usual.
 */
import { createHash } from 'node:crypto';
import type { Signer } from '#api/auth/signer.ts';
import { unlocked } from '#api/db/locks.ts';
import type { AuditEventTable, Database, Timestamp } from '#api/db/schema.ts';
import { inSlices } from '#api/db/slices.ts';
import { newId, type Random } from '#api/ids.ts';
import { type Counters, CountersUnavailable } from '#api/limits/counters.ts';
import { digestIdentity } from '#api/limits/limiter.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Clock, Seconds } from '#shared/clock.ts';

export type FailureReason =
  | 'no_credentials_provided'
  | 'password_too_long'
  | 'user_not_found'
  | 'no_password_set'
  | 'account_inactive'
  | 'invalid_password'
  | 'token_not_provided'
  | 'invalid_token'
  | 'email_already_verified';

interface AuthFailure {
  readonly provider: 'credentials' | 'token';
  readonly reason: FailureReason;
  /** The account of the attempt; null if there is no such account. */
  readonly userId: string | null;
  /** The text in the address field. Only a hash of it is stored, and only if there is no such account. */
  readonly email: string | null;
  /** The client address in the form of `countedAddress`. */
  readonly ipAddress: string;
  readonly requestId: string;
}

export interface FileDeletion {
  /** The account of the caller; null if unknown. */
  readonly actor: { readonly type: 'user' | 'api'; readonly id: string } | null;
  readonly workspaceId: string;
  /** Key of the file as in the path: `{public|private}/{name}`. */
  readonly file: string;
  readonly organizationId: string | null;
  /** The code of the error; null if the file was deleted. */
  readonly failureReason: string | null;
  readonly ipAddress: string;
  readonly requestId: string;
}

/** A write of a known caller, or one that was refused. */
interface AuditEntry {
  /** Name of the action, such as `created` or `userSignedOut`. */
  readonly action: string;
  readonly actor: { readonly type: 'user' | 'api'; readonly id: string };
  /** The changed object. Its id may come from a path, as the caller wrote it. */
  readonly target: { readonly type: string; readonly id: string };
  readonly organizationId: string | null;
  /** The code of the error; null after a success. */
  readonly failureReason: string | null;
  /** Further details. They contain no text that a person typed. */
  readonly changes: Readonly<Record<string, unknown>>;
  readonly ipAddress: string;
  readonly requestId: string;
}

export interface AuditLog {
  /** Whether the log is on. If not, callers need not collect the details. */
  readonly isEnabled: boolean;
  /**
   * Resolves when the entry is written, or skipped because of the counts. A success is always written. Never rejects.
   */
  record(entry: AuditEntry): Promise<void>;
  /** Resolves when the failure is written, or skipped because of the counts. Never rejects. */
  authFailed(failure: AuthFailure): Promise<void>;
  fileDeleted(deletion: FileDeletion): Promise<void>;
  stats(): { readonly written: number; readonly throttled: number; readonly skipped: number };
}

interface AuditOptions {
  readonly isEnabled: boolean;
  readonly db: Database;
  readonly counters: Counters;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: { error(fields: object, message: string): void };
}

const WINDOW: Seconds = 300;
const ALWAYS_WRITTEN = 3;
const THEN_EVERY = 10;
const EMAIL_HASH_LENGTH = 32;
/** Maximum length of a stored id, because callers write ids into paths. */
const TARGET_LENGTH_MAX = 1_024;

export function createAuditLog(options: AuditOptions): AuditLog {
  const { db, counters, signer, clock, random } = options;
  const stats = { written: 0, throttled: 0, skipped: 0 };

  /** @returns the number of failures in the window; null if this one is not written */
  const countFailure = async (name: string, identity: string): Promise<number | null> => {
    const { used } = await counters.use(name, digestIdentity(signer, identity), WINDOW);
    if (used <= ALWAYS_WRITTEN || used % THEN_EVERY === 0) return used;
    stats.throttled += 1;
    return null;
  };

  const write = async (event: Omit<AuditEventTable, 'id' | 'timestamp'>): Promise<void> => {
    await db
      .insertInto('auditEvents')
      .values({ id: newId(random), timestamp: toTimestamp(clock()), ...event })
      .execute();
    stats.written += 1;
  };

  const recordLogin = async (failure: AuthFailure): Promise<void> => {
    // Failures without an account share one identity.
    const identity = `audit:${failure.provider}:${failure.email?.trim().toLowerCase() ?? ''}`;
    const failuresInWindow = await countFailure('audit.authFailed', identity);
    if (failuresInWindow === null) return;
    const actorId = actorOf(failure);
    await write({
      action: 'authenticationAttempted',
      actorId,
      actorType: 'user',
      targetId: actorId,
      targetType: 'user',
      status: 'failure',
      organizationId: null,
      ipAddress: failure.ipAddress,
      eventId: failure.requestId,
      changes: JSON.stringify({
        failureReason: failure.reason,
        provider: failure.provider,
        authMethod: failure.provider === 'credentials' ? 'password' : 'email_verification',
        failuresInWindow,
      }),
    });
  };

  /** @param counter the name and the identity by which failures are counted */
  const recordEntry = async (entry: AuditEntry, counter: readonly [string, string]): Promise<void> => {
    const { actor, target, failureReason } = entry;
    const isFailure = failureReason !== null;
    const failuresInWindow = isFailure ? await countFailure(...counter) : null;
    if (isFailure && failuresInWindow === null) return;
    await write({
      action: entry.action,
      actorId: actor.id,
      actorType: actor.type,
      // PostgreSQL stores no NUL.
      targetId: target.id.slice(0, TARGET_LENGTH_MAX).replaceAll('\0', '\uFFFD'),
      targetType: target.type,
      status: isFailure ? 'failure' : 'success',
      organizationId: entry.organizationId,
      ipAddress: entry.ipAddress,
      eventId: entry.requestId,
      changes: JSON.stringify({
        ...entry.changes,
        ...(isFailure ? { failureReason, failuresInWindow } : {}),
      }),
    });
  };

  const recordDeletion = ({ file, workspaceId, actor, ...rest }: FileDeletion): Promise<void> =>
    recordEntry(
      {
        ...rest,
        action: 'deleted',
        actor: actor ?? { type: 'user', id: 'unknown' },
        target: { type: 'file', id: file },
        changes: { workspaceId: workspaceId.slice(0, TARGET_LENGTH_MAX) },
      },
      ['audit.fileDeleted', `audit:file:${rest.ipAddress}`],
    );

  const recorded = async (recording: () => Promise<void>): Promise<void> => {
    if (!options.isEnabled) return;
    try {
      await recording();
    } catch (error) {
      stats.skipped += 1;
      // The store of the counters logs its own outage. Any other error is a bug.
      if (!(error instanceof CountersUnavailable)) {
        options.log.error({ err: error }, 'an audit entry could not be written');
      }
    }
  };

  return {
    isEnabled: options.isEnabled,
    record: (entry) =>
      recorded(() => recordEntry(entry, ['audit.write', `audit:${entry.actor.type}:${entry.actor.id}`])),
    authFailed: (failure) => recorded(() => recordLogin(failure)),
    fileDeleted: (deletion) => recorded(() => recordDeletion(deletion)),
    stats: () => ({ ...stats }),
  };
}

function actorOf({ userId, email }: AuthFailure): string {
  if (userId !== null) return userId;
  if (email === null || email === '') return 'unknown';
  const hash = createHash('sha256').update(email.trim().toLowerCase()).digest('hex');
  return `email_${hash.slice(0, EMAIL_HASH_LENGTH)}`;
}

/** Deletes old entries in small steps. @returns their number */
export async function forgetAuditEvents(
  db: Database,
  before: Timestamp,
  isStopping: () => boolean = () => false,
): Promise<number> {
  let forgotten = 0;
  await inSlices(async (rowsMax) => {
    const { numDeletedRows } = await db
      .deleteFrom('auditEvents')
      .where('id', 'in', unlocked(db, oldAuditEvents(db, before, rowsMax)))
      .executeTakeFirst();
    forgotten += Number(numDeletedRows);
    return Number(numDeletedRows);
  }, isStopping);
  return forgotten;
}

export function oldAuditEvents(db: Database, before: Timestamp, rowsMax: number) {
  return db
    .selectFrom('auditEvents')
    .select('id')
    .where('timestamp', '<', before)
    .orderBy('timestamp')
    .limit(rowsMax);
}
