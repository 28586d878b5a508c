/** Reads `ban` of a policy: after how many denials a client is banned, and for how long. */
import type { Identifier } from '#gateway/identity/identifier.ts';
import { secondsOf } from './duration.ts';
import type { PolicyBan } from './policy.ts';
import type { PolicyFile } from './schema.ts';

type Row = PolicyFile['policies'][number];

const WITHIN_SECONDS_MAX = 86_400;
const BAN_SECONDS_MAX = 7 * 86_400;
/** A ban of an IPv6 address covers its network with this prefix length. */
const NETWORK_BITS = 64;

export function banOf(
  { ban, name, bucket = name }: Row,
  report: (key: string, message: string, fix: string) => void,
): PolicyBan | null {
  if (ban === undefined) return null;
  const { after, within, for: length, growing = false } = ban;
  const [withinSeconds, forSeconds] = [secondsOf(within), secondsOf(length)];
  if (withinSeconds > WITHIN_SECONDS_MAX)
    report('within', `within ${within} is too long`, 'write at most 1d');
  if (forSeconds > BAN_SECONDS_MAX) report('for', `a ban of ${length} is too long`, 'write at most 7d');
  return { bucket, after, withinMs: withinSeconds * 1000, forMs: forSeconds * 1000, growing };
}

/** @returns why clients of this identifier cannot be banned; null if they can */
export function whyNotBanned(identifier: Identifier): string | null {
  switch (identifier.kind) {
    case 'address':
      // In a wider network, one client could use up the limit and have its neighbours denied and banned.
      return identifier.ipv6Prefix === NETWORK_BITS
        ? null
        : `a ban is by /${NETWORK_BITS}, and ${identifier.name} counts by /${identifier.ipv6Prefix}`;
    case 'credential':
    case 'token':
      return null;
    case 'path':
    case 'body':
    case 'everyone':
    case 'combined':
      return `${identifier.name} names no single client`;
    default:
      return identifier satisfies never;
  }
}
