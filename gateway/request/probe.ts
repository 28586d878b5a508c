/**
 * A probe is a request that `floodgate doctor` sends to the public address, to learn which client address the gateway
 * sees. Its token is made with the salt, so every process of every gateway can check it. A token is valid for a minute.
 * A probe is not charged, not forwarded and not logged.
 */
import { timingSafeEqual } from 'node:crypto';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import type { Digester } from '#gateway/identity/digest.ts';
import type { CredentialIdentifier } from '#gateway/identity/identifier.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { Millis } from '#shared/clock.ts';
import type { Enforcement } from './enforcement.ts';
import { addressSource, type Caller } from './reading/caller.ts';

/** How the gateway saw a probe. */
export interface Seen {
  /** Digest of the client address. */
  readonly identity: string;
  /** Where the address was read, in the terms of `floodgate why`. */
  readonly addressFrom: string;
  readonly isPeerTrusted: boolean;
  /** Number of entries in X-Forwarded-For. */
  readonly forwardedCount: number;
  /** Whether another proxy sent the probe to the decision listener, so that it did not pass through the gateway. */
  readonly isAsked: boolean;
}

interface Probed {
  readonly head: CheckedHead;
  readonly caller: Caller;
  readonly entry: AccessEntry | null;
}

const VALID_MS: Millis = 60_000;
/** Names in policy files have no spaces, so no credential of a client has such a digest. */
const PROBE: CredentialIdentifier = { name: 'doctor probe', kind: 'credential', sources: [] };

/** @param now the gateway's time in milliseconds since the epoch */
export function probeToken(digester: Digester, now: Millis): string {
  const until = String(Math.round(now + VALID_MS));
  return `${until}.${digester.identify(PROBE, until).digest}`;
}

/** @returns the reply to a probe; null if the request is none, or its token is invalid */
export function probeReply(
  { head, caller, entry }: Probed,
  isAsked: boolean,
  { clock, trust }: Pick<Enforcement['options'], 'clock' | 'trust'>,
): string | null {
  if (head.probe === null) return null;
  const [, until = '', digest = ''] = /^(\d{1,16})\.([\w-]{22})$/.exec(head.probe) ?? [];
  if (digest === '') return null;
  const now = clock();
  if (Number(until) < now || Number(until) > now + 2 * VALID_MS) return null;
  const expected = caller.table.digester.identify(PROBE, until).digest;
  if (!timingSafeEqual(Buffer.from(expected), Buffer.from(digest))) return null;
  entry?.withdraw();
  const seen: Seen = {
    identity: caller.identity().digest,
    addressFrom: addressSource(caller, trust),
    isPeerTrusted: caller.origin.trusted,
    forwardedCount: head.forwardedFor.split(',').filter((entry) => entry.trim() !== '').length,
    isAsked,
  };
  return JSON.stringify(seen);
}
