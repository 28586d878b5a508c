/** Decides whether a ban, or an entry of the lists `allow` and `deny`, applies to a request. */
import { carriersOf, presentedValues, VALUES_MAX } from '#gateway/identity/credential.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { SimpleIdentifier } from '#gateway/identity/identifier.ts';
import { entryFor, type ListEntry } from '#gateway/policy/lists.ts';
import { userAgentWords } from '#gateway/policy/user-agent.ts';
import type { Millis } from '#shared/clock.ts';
import type { Enforcement } from './enforcement.ts';
import { type IdentifiableRequest, identityOf } from './reading/identify.ts';
import { isProven, type ProvableRequest } from './reading/prove.ts';

export type Listing = Ban | { readonly kind: 'listed'; readonly entry: ListEntry } | Malformed;

export interface Ban {
  readonly kind: 'banned';
  readonly identity: Identity;
  readonly endsAt: Millis;
  /** The policy that made the ban. null if an operator made it. */
  readonly policy: string | null;
  /** The ban does not apply if one of these API keys is proven. This process may have to ask the store. */
  readonly unlessProven: readonly Identity[];
}

interface Malformed {
  readonly kind: 'malformed';
  readonly reason: string;
}

/** All identities of a request: its address, and the values that it presents for identifiers of the policy file. */
interface PresentedIdentities {
  readonly certain: readonly Identity[];
  /** The identities in `certain` that are API keys. */
  readonly keys: readonly Identity[];
  /** Whether the request has a valid signed token, which needs no other proof. */
  readonly isSigned: boolean;
  /** If a request presents several values of one identifier, all of them. The application may use any of them. */
  readonly doubtful: readonly Identity[];
}

const NOBODY: PresentedIdentities = { certain: [], keys: [], isSigned: false, doubtful: [] };
const NO_KEYS: readonly Identity[] = [];

type ListableRequest = IdentifiableRequest & ProvableRequest;

/**
 * Finds the ban or list entry that decides a request. A closed route is closed for everybody. A ban takes precedence
 * over the lists. But an entry of `allow` takes precedence over a ban by a policy.
 *
 * @param closedBy the entry of `deny` that closes the route; null if the route is open
 * @returns null if no ban and no entry applies
 */
export function listingOf(
  enforcement: Enforcement,
  request: ListableRequest,
  closedBy: ListEntry | null,
): Listing | null {
  const { options, policies } = enforcement;
  const { bans } = options;
  const { lists } = policies;
  if (closedBy !== null) return { kind: 'listed', entry: closedBy };
  if (bans.size === 0 && lists === null) return null;
  const areDigestsAsked = bans.size > 0 || (lists?.digests.size ?? 0) > 0;
  const presented = areDigestsAsked ? identitiesOf(request) : NOBODY;
  if (typeof presented === 'string') return { kind: 'malformed', reason: presented };
  const { byOperator, byPolicy } = bansOn(presented, request, enforcement);
  if (byOperator !== null || lists === null) return byOperator ?? byPolicy;
  const entry = entryFor(lists, {
    digests: presented.certain.map(({ digest }) => digest),
    doubtful: presented.doubtful.map(({ digest }) => digest),
    address: request.caller.address.bytes,
    words: lists.programs.size === 0 ? [] : userAgentWords(request.req.rawHeaders),
  });
  if (byPolicy !== null && entry?.list !== 'allow') return byPolicy;
  return entry === null ? null : { kind: 'listed', entry };
}

interface BansOnRequest {
  byOperator: Ban | null;
  byPolicy: Ban | null;
}

const NO_BANS: Readonly<BansOnRequest> = { byOperator: null, byPolicy: null };

/**
 * Finds the longest ban by an operator and the longest ban by a policy. A ban of an address by a policy does not apply
 * to requests with a proven key. So no client can cause a ban of others who share its address.
 */
function bansOn(
  { certain, doubtful, keys, isSigned }: PresentedIdentities,
  request: ListableRequest,
  enforcement: Enforcement,
): Readonly<BansOnRequest> {
  const { bans, clock, limiter } = enforcement.options;
  if (bans.size === 0) return NO_BANS;
  const now = clock();
  const address = request.caller.identity();
  const found: BansOnRequest = { byOperator: null, byPolicy: null };
  const look = (identity: Identity): void => {
    const ban = bans.of(identity.digest, now);
    if (ban === null) return;
    const { endsAt, policy } = ban;
    const by = policy === null ? 'byOperator' : 'byPolicy';
    if (endsAt <= (found[by]?.endsAt ?? 0)) return;
    const isShared = policy !== null && identity === address;
    if (isShared && (isSigned || keys.some((key) => isProven(key, request, limiter)))) return;
    found[by] = { kind: 'banned', identity, endsAt, policy, unlessProven: isShared ? keys : NO_KEYS };
  };
  for (const identity of certain) look(identity);
  for (const identity of doubtful) look(identity);
  return found;
}

/** @returns a string with the reason if the request must be refused */
export function identitiesOf(request: IdentifiableRequest): PresentedIdentities | string {
  const { caller } = request;
  const certain = [caller.identity()];
  const keys: Identity[] = [];
  let isSigned = false;
  const doubtful: Identity[] = [];
  for (const identifier of caller.table.set.identifiers) {
    const identity = identityOf(identifier, request, null);
    if (typeof identity !== 'string') {
      if (identity === null) continue;
      certain.push(identity);
      if (identifier.kind === 'token') isSigned = true;
      else if (identifier.kind === 'credential') keys.push(identity);
      continue;
    }
    const all = everyIdentityOf(identifier, request);
    if (typeof all === 'string') return all;
    doubtful.push(...all);
  }
  return { certain, keys, isSigned, doubtful };
}

/** Returns all identities of an identifier for which the request presents several different values. */
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
