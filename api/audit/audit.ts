/**
 * The audit log: logins, and every request that a key or a logged-in person sent to change something, also a refused one.
 * The table is `auditEvents`, and AUDIT_LOG_ENABLED=1 turns it on. Rows are never changed. No row contains an e-mail
 * address, a password, a token or a key.
 *
 * Failures are counted in windows of five minutes for each account or caller, so that an attack does not fill the disk:
 * the first three are written, then every tenth. Without the store of the counters no failure is written (fail closed);
 * the request is answered as usual.
 */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { unlocked } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { countedAddress } from '#api/http/client-address.ts';
import { type Counters, CountersUnavailable } from '#api/limits/counters.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock, Seconds } from '#shared/clock.ts';

export type FailureReason =
  | 'no_credentials_provided'
  | 'password_too_long'
  | 'user_not_found'
  | 'no_password_set'
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
}

interface Entry {
  /** Such as `authenticationSucceeded`, or the method and the pattern of a route. */
  readonly action: string;
  readonly actor: { readonly type: 'user' | 'api'; readonly id: string };
  /** The ids in the path. Default: none. */
  readonly target?: string;
  readonly isFailure?: boolean;
  /** Further details. They contain no text that a person typed. */
  readonly changes?: Readonly<Record<string, string | number>>;
  /** The identity by which failures are counted. Default: the actor. */
  readonly countedBy?: string;
}

export interface AuditLog {
  /** Resolves when the entry is written, or skipped because of the counts. A success is always written. Never rejects. */
  record(request: FastifyRequest, entry: Entry): Promise<void>;
  /** As `record`, for a failed login. */
  authFailed(request: FastifyRequest, failure: AuthFailure): Promise<void>;
}

interface AuditOptions {
  readonly isEnabled: boolean;
  readonly trustedProxies: ProxyTrust;
  readonly db: Database;
  readonly counters: Counters;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: { error(fields: object, message: string): void };
}

const WINDOW: Seconds = 300;
const ALWAYS_WRITTEN = 3;
const THEN_EVERY = 10;
const EMAIL_HASH_LENGTH = 32;

export function createAuditLog(options: AuditOptions): AuditLog {
  const { isEnabled, db, counters, clock, random, trustedProxies } = options;

  const write = async (request: FastifyRequest, entry: Entry): Promise<void> => {
    const { action, actor, target = '', isFailure = false, changes = {} } = entry;
    const { countedBy = `${actor.type}:${actor.id}` } = entry;
    const failures: Record<string, number> = {};
    if (isFailure) {
      const { used } = await counters.use('audit', countedBy, WINDOW);
      if (used > ALWAYS_WRITTEN && used % THEN_EVERY !== 0) return;
      failures.failuresInWindow = used;
    }
    const row = {
      ...{ id: newId(random), timestamp: toTimestamp(clock()), action, target },
      ...({ actorId: actor.id, actorType: actor.type, status: isFailure ? 'failure' : 'success' } as const),
      ...{ ipAddress: countedAddress(request, trustedProxies), eventId: request.id },
      changes: JSON.stringify({ ...changes, ...failures }),
    };
    await db.insertInto('auditEvents').values(row).execute();
  };

  const record: AuditLog['record'] = async (request, entry) => {
    if (!isEnabled) return;
    try {
      await write(request, entry);
    } catch (error) {
      // The store of the counters logs its own outage. Any other error is a bug.
      if (error instanceof CountersUnavailable) return;
      options.log.error({ err: error }, 'an audit entry could not be written');
    }
  };

  return {
    record,
    authFailed: (request, { provider, reason, userId, email }) =>
      record(request, {
        action: 'authenticationAttempted',
        actor: { type: 'user', id: userId ?? hashed(email) },
        isFailure: true,
        changes: {
          failureReason: reason,
          provider,
          authMethod: provider === 'credentials' ? 'password' : 'email_verification',
        },
        // Failures without an account share one identity.
        countedBy: `${provider}:${email?.trim().toLowerCase() ?? ''}`,
      }),
  };
}

/** Names an account that does not exist. */
function hashed(email: string | null): string {
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
  const all = db.selectFrom('auditEvents').select('id');
  return all.where('timestamp', '<', before).orderBy('timestamp').limit(rowsMax);
}
