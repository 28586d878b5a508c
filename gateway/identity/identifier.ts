/** The identifiers of a policy file: what of a request tells one client from another. */
import type { KeyObject } from 'node:crypto';

/** Who is counted. The same object wherever the same is meant. */
export type Identifier = SimpleIdentifier | CombinedIdentifier;

export type SimpleIdentifier = AddressIdentifier | CredentialIdentifier | TokenIdentifier | PathIdentifier;

export interface AddressIdentifier {
  readonly name: string;
  readonly kind: 'address';
  readonly ipv6Prefix: number;
}

export interface CredentialIdentifier {
  readonly name: string;
  readonly kind: 'credential';
  readonly sources: readonly CredentialSource[];
}

/** A claim of a signed token. */
export interface TokenIdentifier {
  readonly name: string;
  readonly kind: 'token';
  readonly sources: readonly TokenSource[];
}

export interface TokenSource {
  /** Of this file's. */
  readonly id: number;
  /** Where the token is. */
  readonly carrier: CredentialSource;
  readonly claim: string;
  readonly keys: KeySet;
  /** Who has to have issued it; null: whoever signed it. */
  readonly issuer: string | null;
  /** For whom, of these, it has to be meant; null: for anybody. */
  readonly audience: readonly string[] | null;
}

/** A parameter of the policy's own route. */
export interface PathIdentifier {
  readonly name: string;
  readonly kind: 'path';
  readonly param: string;
  /** Which segment of the path it is, from 0. */
  readonly at: number;
  /** All that follows is part of it. */
  readonly takesRest: boolean;
  /** `ANN` is `ann`. */
  readonly ignoresCase: boolean;
}

/** One identity from several; nobody where one of them is absent. */
export interface CombinedIdentifier {
  readonly name: string;
  readonly kind: 'combined';
  readonly parts: readonly SimpleIdentifier[];
  /** Which of them has to be proven; -1: none. */
  readonly proofAt: number;
}

/** Where a client presents its credential. Header names are lower-case. */
export type CredentialSource =
  | { readonly kind: 'header'; readonly header: string }
  /** `Authorization: Bearer …`, only values that begin with the prefix. */
  | { readonly kind: 'bearer'; readonly prefix: string }
  | { readonly kind: 'cookie'; readonly cookie: string }
  | { readonly kind: 'query'; readonly parameter: string };

/** Clients can make up its values, so that they have to be proven. */
export function needsProof(identifier: Identifier): boolean {
  switch (identifier.kind) {
    case 'address':
    // Whoever signed it has proven it.
    case 'token':
      return false;
    case 'credential':
    case 'path':
      return true;
    case 'combined':
      return identifier.proofAt >= 0;
    default:
      return identifier satisfies never;
  }
}

/** What an identifier consists of. */
export function partsOf(identifier: Identifier): readonly SimpleIdentifier[] {
  return identifier.kind === 'combined' ? identifier.parts : [identifier];
}

/** The algorithms of a token's signature. Algorithms with a shared secret are not among them. */
export type SigningAlgorithm = 'RS256' | 'ES256' | 'EdDSA';

export interface SigningKey {
  /** null: the key set does not name the key. */
  readonly id: string | null;
  readonly algorithm: SigningAlgorithm;
  readonly key: KeyObject;
}

export type KeySet = readonly SigningKey[];
