/** Decides which credentials are proven, and what a reply proves. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Visitor } from '#gateway/limiter/charge.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { Regulars } from '#gateway/policy/regulars.ts';
import { NETWORK_SHARE } from '#gateway/policy/shares.ts';
import { networkOf, type Sender } from './caller.ts';
import type { KnownAs } from './reading.ts';

export type ProofSource = Pick<Limiter, 'isProven'>;

export interface ProvableRequest {
  readonly caller: Sender;
  /** Whether the sender has checked the request's credentials, so that they count as proven. */
  readonly isVouchedFor: boolean;
}

/** Whether this process knows that a credential is proven. A client in the operator's plans file counts as proven. */
export function isProven(
  credential: Identity,
  { caller, isVouchedFor }: ProvableRequest,
  limiter: ProofSource,
): boolean {
  const { plans } = caller.table.set;
  return isVouchedFor || plans?.digests.has(credential.digest) === true || limiter.isProven(credential);
}

/** Proves the credentials of a request after a reply of 2xx, and withdraws their proof after 401. */
export function learn(limiter: Limiter, identified: KnownAs, status: number): void {
  const { credentials, pathValues } = identified;
  if (status >= 200 && status < 300) {
    // `provable` reads the whole request, so it is called only once an hour for each credential.
    const isKnown = credentials.every((credential) => limiter.isProofFresh(credential));
    const provable = isKnown ? null : identified.provable;
    if (provable !== null) limiter.prove(provable);
    for (const value of pathValues) if (!limiter.isProofFresh(value)) limiter.prove(value);
  } else if (status === 401) {
    for (const credential of credentials) if (limiter.isProven(credential)) limiter.withdraw(credential);
  }
}

interface VisitingRequest {
  readonly caller: Sender;
  /** See IdentifiableRequest. */
  readonly logged?: unknown;
}

export interface MatchedVisit extends VisitingRequest {
  readonly match: Match;
}

/** Records a good reply to a client, if a policy with `newcomers` covers the request. */
export function noteVisit(limiter: Limiter, request: MatchedVisit, status: number): void {
  const regulars = request.match.cover?.regulars ?? null;
  if (regulars === null || status < 200 || status >= 400 || isNever(regulars, request)) return;
  const network = () => networkOf(request.caller, NETWORK_SHARE.identifier);
  limiter.visited(request.caller.identity(), regulars, network);
}

/** Returns how the client of a request counts for policies with `newcomers`. */
export function visitorOf(regulars: Regulars, request: VisitingRequest, limiter: ProofSource): Visitor {
  const client = request.caller.identity();
  if (isNever(regulars, request)) return { client, is: 'never' };
  return { client, is: limiter.isProven(client) ? 'regular' : 'unknown' };
}

function isNever({ never }: Regulars, { caller, logged }: VisitingRequest): boolean {
  const { bytes } = caller.address;
  // All clients without a readable address are one client. In a log no address is readable.
  if (bytes === null) return logged === undefined;
  return never?.(bytes) === true;
}
