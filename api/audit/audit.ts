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
import type { Principal } from '#api/auth/principal.ts';
import type { Signer } from '#api/auth/signer.ts';
import { unlocked } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { type Counters, CountersUnavailable } from '#api/limits/counters.ts';
import { digestIdentity } from '#api/limits/limiter.ts';
import { isId, newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
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

/** A write, or one that was refused. */
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
  /** The name and the identity by which failures are counted. Default: the actor. */
  readonly countedBy?: readonly [name: string, identity: string];
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
export const TARGET_LENGTH_MAX = 1_024;

export function createAuditLog(options: AuditOptions): AuditLog {
  const { db, counters, signer, clock, random } = options;

  /** @returns the number of failures in the window; null if this one is not written */
  const countFailure = async (name: string, identity: string): Promise<number | null> => {
    const { used } = await counters.use(name, digestIdentity(signer, identity), WINDOW);
    return used <= ALWAYS_WRITTEN || used % THEN_EVERY === 0 ? used : null;
  };

  const recordEntry = async (entry: AuditEntry): Promise<void> => {
    const { actor, target, failureReason } = entry;
    const { countedBy = ['audit.write', `audit:${actor.type}:${actor.id}`] } = entry;
    const isFailure = failureReason !== null;
    const failuresInWindow = isFailure ? await countFailure(...countedBy) : null;
    if (isFailure && failuresInWindow === null) return;
    const changes = { ...entry.changes, ...(isFailure ? { failureReason, failuresInWindow } : {}) };
    await db
      .insertInto('auditEvents')
      .values({
        id: newId(random),
        timestamp: toTimestamp(clock()),
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
        changes: JSON.stringify(changes),
      })
      .execute();
  };

  const record = async (entry: AuditEntry): Promise<void> => {
    if (!options.isEnabled) return;
    try {
      await recordEntry(entry);
    } catch (error) {
      // The store of the counters logs its own outage. Any other error is a bug.
      if (!(error instanceof CountersUnavailable)) {
        options.log.error({ err: error }, 'an audit entry could not be written');
      }
    }
  };

  return {
    isEnabled: options.isEnabled,
    record,
    authFailed: (failure) => record(entryOf(failure)),
  };
}

function entryOf(failure: AuthFailure): AuditEntry {
  const { provider, reason, email, ipAddress, requestId } = failure;
  const account = { type: 'user', id: accountOf(failure) } as const;
  return {
    action: 'authenticationAttempted',
    actor: account,
    target: account,
    organizationId: null,
    failureReason: reason,
    changes: { provider, authMethod: provider === 'credentials' ? 'password' : 'email_verification' },
    ipAddress,
    requestId,
    // Failures without an account share one identity.
    countedBy: ['audit.authFailed', `audit:${provider}:${email?.trim().toLowerCase() ?? ''}`],
  };
}

/** @param principal null for a caller without valid credentials */
export function actorOf(principal: Principal | null): AuditEntry['actor'] {
  if (principal === null) return { type: 'user', id: 'unknown' };
  return principal.kind === 'session'
    ? { type: 'user', id: principal.userId }
    : { type: 'api', id: principal.apiKeyId };
}

/**
 * Finds the organization of an entry.
 *
 * @param scopeId a workspace id, which tells the organization of a person with several
 */
export async function organizationOf(
  db: Database,
  principal: Principal | null,
  scopeId: string | null,
): Promise<string | null> {
  if (principal === null) return null;
  if (principal.kind === 'apiKey') return principal.organizationId;
  const [only, ...others] = principal.organizationIds;
  if (only !== undefined && others.length === 0) return only;
  if (scopeId === null || !isId(scopeId)) return null;
  const row = await db
    .selectFrom('workspaces')
    .select('organizationId')
    .where('id', '=', scopeId)
    .executeTakeFirst();
  return row?.organizationId ?? null;
}

function accountOf({ userId, email }: AuthFailure): string {
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
    const some = await deleteSome(db, 'auditEvents', unlocked(db, oldAuditEvents(db, before, rowsMax)));
    forgotten += some;
    return some;
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
