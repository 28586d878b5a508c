/** Decides which credentials are proven, and what a reply proves. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import type { GroupRequest } from '#gateway/policy/groups.ts';
import type { Match } from '#gateway/policy/match.ts';
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

/** A request, as the groups of clients see it that its policies count. */
export interface GroupedRequest extends GroupRequest {
  readonly caller: Sender;
  readonly match: Match;
}

/** Tells the groups of clients that the policies of a request count. */
export function tellGroups(limiter: Limiter, request: GroupedRequest, status: number): void {
  for (const group of request.match.cover?.groups ?? [])
    group.replied(request, status, limiter, (identifier) => networkOf(request.caller, identifier));
}
