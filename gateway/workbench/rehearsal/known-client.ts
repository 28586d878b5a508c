/** What a log of the gateway tells of a client: digests, and not whose they are. */
import type { Identity } from '#gateway/identity/digest.ts';

/** Who sent a request, where digests are known and not whose they are. */
export interface KnownIdentities {
  /** In the order of `Cover.identifiers`; null where the request presents no such credential. */
  readonly identities: readonly (Identity | null)[];
  /** Of the client's address; asked where a credential has to be charged to it. */
  readonly address: () => Identity;
  /** Does this credential have to be charged to the address as well? */
  readonly isUnproven: (credential: Identity) => boolean;
  /** The credential that the answer proves; null: none. */
  readonly provable: Identity | null;
}

/** What else a log of the gateway tells of a client. */
export interface KnownClient {
  readonly plan: string | null;
  /** All that it may be known by in lists. */
  readonly digests: () => readonly string[];
}
