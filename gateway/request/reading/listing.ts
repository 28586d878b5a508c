/** Decides whether a ban, or an entry of the lists `allow` and `deny`, applies to a request. */

import type { Bans } from '#gateway/bans/bans.ts';
import { isInQuery } from '#gateway/identity/credential.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { PathIdentifier } from '#gateway/identity/identifier.ts';
import { hasTooManyParameters, TOO_MANY_PARAMETERS } from '#gateway/identity/pairs.ts';
import { entryFor } from '#gateway/policy/lists.ts';
import { userAgentNames } from '#gateway/policy/user-agent.ts';
import type { Clock } from '#shared/clock.ts';
import { type IdentifiableRequest, identityOf, type PresentedIdentities, pathIdentity } from './identify.ts';
import { isProven, type ProofSource, type ProvableRequest } from './prove.ts';
import type { Banned, Listed, Malformed, Uncovered } from './reading.ts';

/** The bans and proofs that are known. */
export interface Known {
  readonly bans: Pick<Bans, 'size' | 'of' | 'onAddress'>;
  readonly limiter: ProofSource;
  readonly clock: Clock;
}

export const NO_BANS: Known['bans'] = { size: 0, of: () => null, onAddress: () => null };
const NOBODY: PresentedIdentities = { certain: [], keys: [], isSigned: false, doubtful: [] };
const NO_KEYS: readonly Identity[] = [];

export type ListableRequest = IdentifiableRequest & ProvableRequest;

/**
 * Finds the ban or list entry that decides a request. A closed route is closed for everybody. A ban takes precedence
 * over the lists. But an entry of `allow` takes precedence over a ban by a policy.
 *
 * @returns null if no ban and no entry applies
 */
export function listingOf(
  request: ListableRequest,
  known: Known,
): Banned | Listed | Uncovered | Malformed | null {
  const { match, caller } = request;
  const { bans } = known;
  const { lists } = caller.table.set;
  if (match.closedBy !== null) return { kind: 'listed', entry: match.closedBy };
  if (bans.size === 0 && lists === null) return null;
  const areDigestsAsked = bans.size > 0 || lists?.hasDigests === true;
  const presented = areDigestsAsked ? identitiesOf(request) : NOBODY;
  if (typeof presented === 'string') return { kind: 'malformed', reason: presented };
  const { byOperator, byPolicy } = bansOn(presented, request, known);
  if (byOperator !== null || lists === null) return byOperator ?? byPolicy;
  const entry = entryFor(lists, {
    host: request.host,
    digests: presented.certain.map(({ digest }) => digest),
    doubtful: presented.doubtful.map(({ digest }) => digest),
    address: caller.address.bytes,
    words: lists.programWordsMax > 0 ? userAgentNames(request.req.rawHeaders, lists.programWordsMax) : [],
  });
  if (byPolicy !== null && entry?.list !== 'allow') return byPolicy;
  if (entry === null) return null;
  return entry.list === 'deny'
    ? { kind: 'listed', entry }
    : { kind: 'uncovered', allowedBy: entry, identified: null };
}

interface BansOnRequest {
  byOperator: Banned | null;
  byPolicy: Banned | null;
}

const NONE: Readonly<BansOnRequest> = { byOperator: null, byPolicy: null };

/**
 * Finds the longest ban by an operator and the longest ban by a policy. A ban of an address by a policy does not apply
 * to requests with a proven key. So no client can cause a ban of others who share its address.
 */
function bansOn(
  { certain, doubtful, keys, isSigned }: PresentedIdentities,
  request: ListableRequest,
  { bans, clock, limiter }: Known,
): Readonly<BansOnRequest> {
  if (bans.size === 0) return NONE;
  const now = clock();
  const address = request.caller.identity();
  const found: BansOnRequest = { byOperator: null, byPolicy: null };
  const look = (identity: Identity): void => {
    const ban = bans.of(identity.digest, now);
    if (ban === null) return;
    const { endsAt, policy } = ban;
    const by = policy === null ? 'byOperator' : 'byPolicy';
    if (endsAt <= (found[by]?.endsAt ?? 0)) return;
    const isShared = policy !== null && identity.digest === address.digest;
    if (isShared && (isSigned || keys.some((key) => isProven(key, request, limiter)))) return;
    found[by] = { kind: 'banned', identity, endsAt, policy, unlessProven: isShared ? keys : NO_KEYS };
  };
  for (const identity of certain) look(identity);
  for (const identity of doubtful) look(identity);
  const onNetwork = bans.onAddress(request.caller.address.bytes, now);
  if (onNetwork !== null && onNetwork.endsAt > (found.byOperator?.endsAt ?? 0)) {
    const { endsAt, policy } = onNetwork;
    found.byOperator = { kind: 'banned', identity: address, endsAt, policy, unlessProven: NO_KEYS };
  }
  return found;
}

/** @returns a string with the reason if the request must be refused */
export function identitiesOf(request: IdentifiableRequest): PresentedIdentities | string {
  if (request.logged !== undefined) return request.logged.presented;
  const { caller } = request;
  const { identifiers } = caller.table.set;
  // If a policy of the route reads the query, its parameters have been counted.
  const isCounted = request.match.cover?.readsQuery === true;
  if (!isCounted && identifiers.some(isInQuery) && hasTooManyParameters(request.match.target))
    return TOO_MANY_PARAMETERS;
  const certain = [caller.identity()];
  const keys: Identity[] = [];
  let isSigned = false;
  const doubtful: Identity[] = [];
  for (const identifier of identifiers) {
    const identity = identityOf(identifier, request, null);
    if (identifier.kind === 'path') doubtful.push(...otherValues(identifier, request));
    if (typeof identity !== 'string') {
      if (identity === null) continue;
      certain.push(identity);
      if (identifier.kind === 'token') isSigned = true;
      else if (identifier.kind === 'credential') keys.push(identity);
      continue;
    }
    if (identifier.kind !== 'credential' && identifier.kind !== 'token') continue;
    const all = request.presented.everyIdentityOf(identifier, caller.table);
    if (typeof all === 'string') return all;
    doubtful.push(...all);
  }
  return { certain, keys, isSigned, doubtful };
}

/** Returns the values that a part of the path has in the readings besides the plain one. */
function otherValues(
  identifier: PathIdentifier,
  { match, caller }: IdentifiableRequest,
): readonly Identity[] {
  if (match.paths.length <= 1) return [];
  const identities = new Map<string, Identity>();
  for (const path of match.paths.slice(1)) {
    const identity = pathIdentity(identifier, path, caller.table.digester);
    if (identity !== null) identities.set(identity.digest, identity);
  }
  return [...identities.values()];
}
