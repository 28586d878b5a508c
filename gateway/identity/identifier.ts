/** Identifiers of a policy file: which part of a request identifies the client. */
import type { KeyObject } from 'node:crypto';

/** Equal identifiers are the same object. */
export type Identifier = SimpleIdentifier | CombinedIdentifier | FirstIdentifier;

export type SimpleIdentifier =
  | AddressIdentifier
  | CredentialIdentifier
  | TokenIdentifier
  | PathIdentifier
  | BodyIdentifier
  | NetworkIdentifier
  | HostIdentifier
  | typeof EVERYONE;

export interface AddressIdentifier {
  readonly name: string;
  readonly kind: 'address';
  readonly ipv6Prefix: number;
  /** Length of an IPv4 network that is one client. Absent: each IPv4 address is a client. */
  readonly ipv4Prefix?: number;
}

export interface CredentialIdentifier {
  readonly name: string;
  readonly kind: 'credential';
  readonly sources: readonly CredentialSource[];
  /** Whether spellings are one client that databases take for the same key: in other case, or with accents. */
  readonly ignoresCase?: true;
}

/** A claim of a signed token. */
export interface TokenIdentifier {
  readonly name: string;
  readonly kind: 'token';
  readonly sources: readonly TokenSource[];
}

export interface TokenSource {
  readonly id: number;
  readonly carrier: CredentialSource;
  readonly claim: string;
  readonly keys: KeySet;
  /** Required issuer; null for any. */
  readonly issuer: string | null;
  /** Accepted audiences, of which the token must have one; null for any. */
  readonly audience: readonly string[] | null;
}

export interface PathIdentifier {
  readonly name: string;
  readonly kind: 'path';
  /** Name of the parameter, or WHOLE_PATH. */
  readonly param: string;
  readonly at: number;
  /** Whether the value includes all following segments. */
  readonly takesRest: boolean;
  readonly ignoresCase: boolean;
}

/** No parameter has this name. */
export const WHOLE_PATH = '';

/** A field at the top of a small JSON or form body, or of the query. */
export interface BodyIdentifier {
  readonly name: string;
  readonly kind: 'body';
  readonly field: string;
  /** Whether to refuse requests whose body is not read, or that do not present the field. */
  readonly isRequired: boolean;
}

/** The name of the network of the client address, such as that of a provider. Clients in no network are not counted. */
export interface NetworkIdentifier {
  readonly name: string;
  readonly kind: 'network';
  readonly networks: { find(address: readonly number[]): string | undefined };
}

/**
 * The entry of a policy's `hosts` that names the host of the request. Clients choose the host, but not the entries, so
 * they cannot invent identities.
 */
export interface HostIdentifier {
  readonly name: 'host';
  readonly kind: 'host';
  readonly hosts: { entryFor(host: string): string | null };
}

/** Counts all clients as one. */
export const EVERYONE = { name: 'everyone', kind: 'everyone' } as const;

/** Several identifiers together. Without a value for each of them, there is no identity. */
export interface CombinedIdentifier {
  readonly name: string;
  readonly kind: 'combined';
  readonly parts: readonly SimpleIdentifier[];
  /** Index of the part that needs proof; -1 if none does. */
  readonly proofAt: number;
}

/**
 * The first of several identifiers that a request presents. Its identity is that of the part, so an address is the same
 * identity as in a policy by address.
 */
export interface FirstIdentifier {
  readonly name: string;
  readonly kind: 'first';
  readonly parts: readonly FirstPart[];
  /** The last part, if it is an address. Every request has one. */
  readonly address: AddressIdentifier | null;
}

export type FirstPart = CredentialIdentifier | TokenIdentifier | AddressIdentifier;

/** Place where a client presents its credential. Header names are in lower case. */
export type CredentialSource =
  | { readonly kind: 'header'; readonly header: string }
  /** `Authorization: Bearer …`, for values with this prefix. */
  | { readonly kind: 'bearer'; readonly prefix: string }
  | { readonly kind: 'cookie'; readonly cookie: string }
  | { readonly kind: 'query'; readonly parameter: string };

/**
 * Whether the identity must be proven. Clients can invent credentials and path parameters, so those are unproven until
 * the upstream has accepted them.
 */
export function needsProof(identifier: Identifier): boolean {
  switch (identifier.kind) {
    case 'address':
    case 'network':
    case 'host':
    case 'everyone':
    // A field of the body, such as a login name, needs no proof: many people of one address may log in for the first
    // time.
    case 'body':
    // The signature of a token is the proof.
    case 'token':
      return false;
    case 'credential':
    case 'path':
      return true;
    case 'combined':
      return identifier.proofAt >= 0;
    case 'first':
      return identifier.parts.some(needsProof);
    default:
      return identifier satisfies never;
  }
}

/** Whether clients choose the value themselves, unlike an address. */
export function isPresented({ kind }: Identifier): boolean {
  return kind !== 'address' && kind !== 'network' && kind !== 'everyone';
}

/** Whether the body has to be read before the request is decided. */
export function readsBody(identifier: Identifier): boolean {
  return partsOf(identifier).some(({ kind }) => kind === 'body');
}

export function partsOf(identifier: Identifier): readonly SimpleIdentifier[] {
  return identifier.kind === 'combined' || identifier.kind === 'first' ? identifier.parts : [identifier];
}

/** Signature algorithms with public keys. Those with a shared secret are not supported. */
export type SigningAlgorithm = 'RS256' | 'ES256' | 'EdDSA';

export interface SigningKey {
  /** Id of the key (`kid`); null if the key set has none for it. */
  readonly id: string | null;
  readonly algorithm: SigningAlgorithm;
  readonly key: KeyObject;
}

export type KeySet = readonly SigningKey[];
