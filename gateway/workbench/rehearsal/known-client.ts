/** A client as the gateway's log knows it: by digests only. */
import type { Identity } from '#gateway/identity/digest.ts';

/** Identities of a request in a log of the gateway, which has digests only. */
export interface KnownIdentities {
  /** In the order of `Cover.identifiers`; null where the request presents no such credential. */
  readonly identities: readonly (Identity | null)[];
  /** Digest of the client's address. */
  readonly address: () => Identity;
  /** Does this credential have to be charged to the address as well? */
  readonly isUnproven: (credential: Identity) => boolean;
  /** The credential that the answer proves; null: none. */
  readonly provable: Identity | null;
}

export interface KnownClient {
  readonly plan: string | null;
  /** Digests that lists can name. */
  readonly digests: () => readonly string[];
}
