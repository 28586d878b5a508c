import type { Identifier } from '#gateway/identity/identifier.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import { policyKey } from './key.ts';
import { DURATION, flag, object, secondsWithin, whole } from './schema-parts.ts';

/** A ban of an IPv6 address covers its network with this prefix length. */
const NETWORK_BITS = 64;

export const ban = policyKey({
  schema: object(
    ['after', 'within', 'for'],
    {
      after: whole(1, 1_000_000, 'after how many denials'),
      within: DURATION,
      for: DURATION,
      growing: flag('true if each ban is twice as long as the one before; false is the default'),
    },
    'bans clients that are denied too often: write { after: 50, within: 10m, for: 1h }',
  ),
  see: '#banning-repeat-offenders',
  read(written, { bucket, identifier, rowIdentifier, report }): PolicyBan | null {
    if (written === undefined) return null;
    const { after, within, for: length, growing = false } = written;
    const withinMs = secondsWithin('1d', within, ['within'], report) * 1000;
    const forMs = secondsWithin('7d', length, ['for'], report) * 1000;
    const why = rowIdentifier === null ? null : whyNotBanned(rowIdentifier);
    if (why !== null) report([], why, 'ban in a policy by address, with ipv6Prefix 64, or by key', 'key');
    if (identifier === null || whyNotBanned(identifier) !== null) return null;
    return { bucket, after, withinMs, forMs, growing };
  },
  counted: ({ ban }) => JSON.stringify(ban),
  explain: ({ ban }) => (ban === null ? null : banText(ban)),
});

function banText({ after, withinMs, forMs, growing }: PolicyBan): string {
  const longer = growing ? ', twice as long each time' : '';
  return `${after} denials within ${withinMs / 1000} s ban for ${forMs / 1000} s${longer}`;
}

/** @returns why clients of this identifier cannot be banned; null if they can */
function whyNotBanned(identifier: Identifier): string | null {
  switch (identifier.kind) {
    case 'address':
      // In a wider network, one client could use up the limit and have its neighbours denied and banned.
      if (identifier.ipv4Prefix !== undefined)
        return `a ban is by address, and ${identifier.name} counts IPv4 networks of /${identifier.ipv4Prefix}`;
      return identifier.ipv6Prefix === NETWORK_BITS
        ? null
        : `a ban is by /${NETWORK_BITS}, and ${identifier.name} counts by /${identifier.ipv6Prefix}`;
    case 'credential':
    case 'token':
      return null;
    case 'first':
      return identifier.parts.map(whyNotBanned).find((why) => why !== null) ?? null;
    default:
      return `${identifier.name} names no single client`;
  }
}
