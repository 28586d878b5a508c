/**
 * The policy file says this about a request before anything is spent: one of five answers, each with its reasons.
 * read.ts finds it. The gateway, `explain`, the tests of a policy file, replay and the decision listener differ only in
 * what they do with it.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { Charge } from '#gateway/limiter/charge.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Millis } from '#shared/clock.ts';

export type Reading = Malformed | Banned | Listed | Uncovered | ChargedTo;

/** The request can be read in two ways, or breaks a rule of HTTP. */
export interface Malformed {
  readonly kind: 'malformed';
  readonly reason: string;
}

export interface Banned {
  readonly kind: 'banned';
  readonly identity: Identity;
  readonly endsAt: Millis;
  /** The policy that made the ban. null if an operator made it. */
  readonly policy: string | null;
  /** The ban does not apply if one of these API keys is proven. This process may have to ask the store. */
  readonly unlessProven: readonly Identity[];
}

/** The list `deny` names the route or the client. */
export interface Listed {
  readonly kind: 'listed';
  readonly entry: ListEntry;
}

/** No policy counts the request. */
export interface Uncovered {
  readonly kind: 'uncovered';
  /** The entry of the list `allow` that names the client; null if there is none. */
  readonly allowedBy: ListEntry | null;
  /** The identities for policies whose route matches but that do not count it. null if no route matches. */
  readonly identified: KnownAs | null;
}

/** The charge of a request, and the identities that it belongs to. */
export interface ChargedTo {
  readonly kind: 'charged';
  readonly charge: Charge;
  readonly identified: KnownAs;
  /** The client's plan, if a policy has overrides and a trusted proxy names one. */
  readonly plan: string | null;
}

/** The identities of a request, and those that a successful reply proves. */
export interface KnownAs {
  /** One entry for each of `Cover.identifiers`, in the same order. null if the request does not present it. */
  readonly identities: readonly (Identity | null)[];
  /** For each combined identity, the part that must be proven. null if no identity is combined. */
  readonly proofs: readonly (Identity | undefined)[] | null;
  /** For each identifier of the kind `first`, the part that counts. null if there is none. */
  readonly parts: readonly (SimpleIdentifier | undefined)[] | null;
  /** One entry for each of `Cover.distinct`. null if the request does not present it. */
  readonly values: readonly (Identity | null)[];
  readonly credentials: readonly Identity[];
  /** The credential that a successful reply proves; null if none. */
  readonly provable: Identity | null;
  /** Path parameters that need a proof. A successful reply proves all of them. */
  readonly pathValues: readonly Identity[];
}
