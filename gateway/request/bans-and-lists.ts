/** Does a ban, or an entry of the lists allow and deny, name the client of a request, or its route? */
import { carriersOf, presentedValues, VALUES_MAX } from '#gateway/identity/credential.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { Bans } from '#gateway/operate/control/bans.ts';
import { entryFor, type ListEntry } from '#gateway/policy/lists.ts';
import { userAgentWords } from '#gateway/policy/user-agent.ts';
import type { Millis } from '#shared/clock.ts';
import type { Enforcement } from './enforcement.ts';
import { type IdentifiableRequest, identityOf } from './identify.ts';

export type Listing = Ban | { readonly kind: 'listed'; readonly entry: ListEntry } | Malformed;

export interface Ban {
  readonly kind: 'banned';
  readonly identity: Identity;
  readonly endsAt: Millis;
}

interface Malformed {
  readonly kind: 'malformed';
  readonly reason: string;
}

/** All identities of a request: its address, and what it presents to each identifier of the file. */
interface PresentedIdentities {
  readonly certain: readonly Identity[];
  /** All values of identifiers that are presented with several: the application may take any of them. */
  readonly doubtful: readonly Identity[];
}

const NOBODY: PresentedIdentities = { certain: [], doubtful: [] };

/**
 * A ban wins over the lists. A closed route is closed for everybody.
 *
 * @param closedBy the entry that closes the route; null: it is open
 * @returns null: nothing names the client
 */
export function listingOf(
  { options: { bans, clock }, policies: { lists } }: Enforcement,
  request: IdentifiableRequest,
  closedBy: ListEntry | null,
): Listing | null {
  if (closedBy !== null) return { kind: 'listed', entry: closedBy };
  if (bans.size === 0 && lists === null) return null;
  const areDigestsAsked = bans.size > 0 || (lists?.digests.size ?? 0) > 0;
  const presented = areDigestsAsked ? identitiesOf(request) : NOBODY;
  if (typeof presented === 'string') return { kind: 'malformed', reason: presented };
  const ban = longestBan(presented, bans, clock());
  if (ban !== null || lists === null) return ban;
  const entry = entryFor(lists, {
    digests: presented.certain.map(({ digest }) => digest),
    doubtful: presented.doubtful.map(({ digest }) => digest),
    address: request.caller.address.bytes,
    words: lists.programs.size === 0 ? [] : userAgentWords(request.req.rawHeaders),
  });
  return entry === null ? null : { kind: 'listed', entry };
}

function longestBan({ certain, doubtful }: PresentedIdentities, bans: Bans, now: Millis): Ban | null {
  let longest: Ban | null = null;
  for (const identity of [...certain, ...doubtful]) {
    const endsAt = bans.endOf(identity.digest, now);
    if (endsAt > (longest?.endsAt ?? 0)) longest = { kind: 'banned', identity, endsAt };
  }
  return longest;
}

/** @returns a string that says why the request is refused */
export function identitiesOf(request: IdentifiableRequest): PresentedIdentities | string {
  const { caller } = request;
  const certain = [caller.identity()];
  const doubtful: Identity[] = [];
  for (const identifier of caller.table.set.identifiers) {
    const identity = identityOf(identifier, request, null);
    if (typeof identity !== 'string') {
      if (identity !== null) certain.push(identity);
      continue;
    }
    const all = everyIdentityOf(identifier, request);
    if (typeof all === 'string') return all;
    doubtful.push(...all);
  }
  return { certain, doubtful };
}

/** Each identity of an identifier for which the request presents different values. */
function everyIdentityOf(
  identifier: SimpleIdentifier,
  { req: { rawHeaders }, target, caller }: IdentifiableRequest,
): Identity[] | string {
  const { tokens, digester } = caller.table;
  const identities: Identity[] = [];
  const sources = identifier.kind === 'token' ? identifier.sources : [null];
  for (const source of sources) {
    const carriers = source === null ? carriersOf(identifier) : [source.carrier];
    const values = presentedValues(rawHeaders, carriers, target);
    if (values.size > VALUES_MAX)
      return `the request presents more than ${VALUES_MAX} different values of ${identifier.name}; send one`;
    for (const value of values) {
      const identity =
        identifier.kind === 'token' && source !== null
          ? tokens.identify(identifier, source, value)
          : digester.identify(identifier, value);
      if (identity !== null) identities.push(identity);
    }
  }
  return identities;
}
