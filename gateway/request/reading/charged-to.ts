/** The charge of a request, and the identities that it belongs to. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Charge } from '#gateway/limiter/charge.ts';

export interface ChargedTo {
  readonly charge: Charge;
  readonly identified: KnownAs;
  /** Whether some of its counters count only requests with a certain outcome. */
  readonly hasOutcomes: boolean;
  /** The client's plan, if a policy has overrides and a trusted proxy names one. */
  readonly plan: string | null;
}

/** The identities of a request, and those that a successful reply proves. */
export interface KnownAs {
  /** One entry for each of `Cover.identifiers`, in the same order. null if the request does not present it. */
  readonly identities: readonly (Identity | null)[];
  readonly credentials: readonly Identity[];
  /** The credential that a successful reply proves; null if none. */
  readonly provable: Identity | null;
  /** Path parameters that need a proof. A successful reply proves all of them. */
  readonly pathValues: readonly Identity[];
}
