/** Finds the identities of a request: its address, and the credentials that it presents. */
import { fieldOf, type SentBody } from '#gateway/identity/body-field.ts';
import { isOnlyCredential, type PresentedCredential } from '#gateway/identity/credential.ts';
import type { Digester, Identity } from '#gateway/identity/digest.ts';
import {
  type BodyIdentifier,
  type CombinedIdentifier,
  type CredentialIdentifier,
  type FirstIdentifier,
  type HostIdentifier,
  type Identifier,
  type PathIdentifier,
  readsBody,
  type SimpleIdentifier,
  type TokenIdentifier,
  WHOLE_PATH,
} from '#gateway/identity/identifier.ts';
import type { Cover, Match } from '#gateway/policy/match.ts';
import { pathValue } from '#gateway/policy/target.ts';
import { networkOf, type Sender } from './caller.ts';
import type { Presented } from './presented.ts';
import type { KnownAs } from './reading.ts';

/** The parts of a request that identify its sender. */
export interface IdentifiableRequest {
  readonly req: {
    readonly method?: string | undefined;
    /** Alternating names and values. */
    readonly rawHeaders: readonly string[];
  };
  readonly match: Match;
  /** The canonical host; empty if nothing in the policy file depends on it. */
  readonly host: string;
  readonly caller: Sender;
  readonly presented: Presented;
  /** The body of the request. null if no policy of the route counts a field of it, or it is not read yet. */
  readonly sentBody: SentBody | null;
  /** The identities of a request in a log of the gateway, which has digests only. */
  readonly logged?: LoggedIdentities;
}

export interface LoggedIdentities {
  /** Those that the policies of the route count. */
  readonly counted: KnownAs;
  readonly presented: PresentedIdentities;
}

/** All identities of a request: its address, and the values that it presents for identifiers of the policy file. */
export interface PresentedIdentities {
  readonly certain: readonly Identity[];
  /** The identities in `certain` that are API keys. */
  readonly keys: readonly Identity[];
  /** Whether the request has a valid signed token, which needs no other proof. */
  readonly isSigned: boolean;
  /** If a request presents several values of one identifier, all of them. The application may use any of them. */
  readonly doubtful: readonly Identity[];
}

/**
 * @param reading the reading of the path that values are taken from. null: for each identifier the first reading in
 * which a policy counts it
 * @returns a string with the reason for a refusal, such as two different values of one identifier
 */
export function identify(
  cover: Cover,
  request: IdentifiableRequest,
  reading: string | null = null,
): KnownAs | string {
  if (request.logged !== undefined) return request.logged.counted;
  const found = new Identified();
  for (const identifier of cover.identifiers) {
    const path = reading ?? firstPathFor(identifier, request.match);
    if (identifier.kind === 'combined') {
      const refusal = addCombined(identifier, request, found, path);
      if (refusal !== null && !isTried(identifier, cover)) return refusal;
      if (refusal !== null) found.add(null);
      continue;
    }
    if (identifier.kind === 'first') {
      const refusal = addFirst(identifier, request, found);
      if (refusal !== null) return refusal;
      continue;
    }
    let identity = identityOf(identifier, request, found, path);
    if (typeof identity === 'string') {
      if (!isTried(identifier, cover)) return identity;
      identity = null;
    }
    if (identifier.kind === 'path' && identity !== null && isCertain(identifier, identifier, request.match))
      found.addPathValue(identity);
    found.add(identity);
  }
  if (request.req.method === 'OPTIONS') found.proveNothing();
  if (cover.distinct.length === 0) return found;
  const values = valuesOf(cover, request, found);
  if (typeof values === 'string') return values;
  found.values = values;
  return found;
}

/** Returns the readings of the path in which a policy counts the identifier, if there are several readings. */
function pathsFor(identifier: Identifier, { readings }: Match): readonly string[] {
  return readings.flatMap(({ path, cover }) =>
    cover !== null &&
    (cover.identifiers.includes(identifier) || cover.distinct.some((one) => one === identifier))
      ? [path]
      : [],
  );
}

function firstPathFor(identifier: Identifier, match: Match): string {
  return match.readings.length === 0 ? match.path : (pathsFor(identifier, match)[0] ?? match.path);
}

/** Whether a part of the path is the same in each reading. Otherwise nobody knows which value a reply proves. */
function isCertain(part: PathIdentifier, identifier: Identifier, match: Match): boolean {
  if (match.readings.length === 0) return true;
  return new Set(pathsFor(identifier, match).map((path) => valueIn(path, part))).size <= 1;
}

/**
 * Returns the identities of `Cover.distinct`. They need no proof, but a reply may depend on a field of the body.
 *
 * @returns a string with the reason for a refusal
 */
function valuesOf(
  cover: Cover,
  request: IdentifiableRequest,
  found: Identified,
): (Identity | null)[] | string {
  const values: (Identity | null)[] = [];
  for (const identifier of cover.distinct) {
    const path = firstPathFor(identifier, request.match);
    let value = identityOf(identifier, request, identifier.kind === 'body' ? found : null, path);
    if (typeof value === 'string' && identifier.kind === 'credential')
      value = `the request presents two different values of ${identifier.name}; send one`;
    if (typeof value === 'string' && !isTried(identifier, cover)) return value;
    values.push(typeof value === 'string' ? null : value);
  }
  return values;
}

/** Whether only policies in shadow mode count this field of the body. They never refuse a request for its body. */
function isTried(identifier: Identifier, { policies }: Cover): boolean {
  const counting = policies.filter(
    (policy) => policy.identifier === identifier || policy.distinct === identifier,
  );
  return readsBody(identifier) && counting.every(({ mode }) => mode === 'shadow');
}

/** @returns the reason for a refusal; null if there is none */
function addCombined(
  combined: CombinedIdentifier,
  request: IdentifiableRequest,
  found: Identified,
  path: string,
): string | null {
  const { parts, proofAt } = combined;
  const identities: Identity[] = [];
  for (const part of parts) {
    const identity = identityOf(part, request, found, path);
    if (typeof identity === 'string') return identity;
    if (identity !== null) identities.push(identity);
  }
  if (identities.length < parts.length) {
    found.add(null);
    return null;
  }
  const proof = identities[proofAt];
  const proving = parts[proofAt];
  if (proof !== undefined && proving?.kind === 'path' && isCertain(proving, combined, request.match))
    found.addPathValue(proof);
  found.add(request.caller.table.digester.combine(identities), proof);
  return null;
}

/** @returns the reason for a refusal; null if there is none */
function addFirst(
  { parts }: FirstIdentifier,
  request: IdentifiableRequest,
  found: Identified,
): string | null {
  for (const part of parts) {
    const identity = identityOf(part, request, found);
    if (typeof identity === 'string') return identity;
    if (identity === null) continue;
    found.addPart(identity, part);
    return null;
  }
  found.add(null);
  return null;
}

/**
 * @param found collects what the reply may prove; null if that is not needed
 * @param path the reading of the path that a value is taken from
 * @returns null if the request does not present the identifier; a string with the reason for a refusal
 */
export function identityOf(
  identifier: SimpleIdentifier,
  request: IdentifiableRequest,
  found: Identified | null,
  path = request.match.path,
): Identity | string | null {
  switch (identifier.kind) {
    case 'address':
      return request.caller.identity(identifier);
    case 'everyone':
      return request.caller.table.everyone;
    case 'network':
      return networkOf(request.caller, identifier);
    case 'host':
      return hostIdentity(identifier, request);
    case 'path':
      return pathIdentity(identifier, path, request.caller.table.digester);
    case 'body':
      return bodyIdentity(identifier, request, found);
    case 'credential':
    case 'token':
      return presentedIdentity(identifier, request, found);
    default:
      return identifier satisfies never;
  }
}

function hostIdentity(identifier: HostIdentifier, { host, caller }: IdentifiableRequest): Identity | null {
  const entry = identifier.hosts.entryFor(host);
  return entry === null ? null : caller.table.digester.identify(identifier, entry);
}

/** @returns null if the path has no such part */
export function pathIdentity(identifier: PathIdentifier, path: string, digester: Digester): Identity | null {
  const value = valueIn(path, identifier);
  // The root has no segments, and is a value of the whole path too.
  if (value === null && identifier.param !== WHOLE_PATH) return null;
  return digester.identify(identifier, value ?? '');
}

function valueIn(path: string, { at, takesRest, ignoresCase }: PathIdentifier): string | null {
  return pathValue(path, at, takesRest, ignoresCase);
}

function bodyIdentity(
  identifier: BodyIdentifier,
  { sentBody, match: { target }, caller }: IdentifiableRequest,
  found: Identified | null,
): Identity | string | null {
  if (sentBody === null) return null;
  const read = fieldOf(sentBody, target, identifier.field);
  // A body that the gateway cannot read may also identify its sender.
  if (read.kind === 'malformed' || read.value !== null || sentBody.kind === 'unread') found?.addOther();
  if (read.kind === 'malformed') return read.reason;
  // An unread body may have the field too, with another value than the query.
  if (identifier.isRequired && sentBody.kind === 'unread') return sentBody.reason;
  if (read.value !== null) return caller.table.digester.identify(identifier, read.value);
  return identifier.isRequired ? `the request presents no ${identifier.field}` : null;
}

/** An invalid token identifies nobody. */
function presentedIdentity(
  identifier: CredentialIdentifier | TokenIdentifier,
  { req: { rawHeaders }, match: { target }, caller, presented }: IdentifiableRequest,
  found: Identified | null,
): Identity | string | null {
  const identity = presented.identityOf(identifier, caller.table);
  const value = presented.firstOf(identifier);
  if (value === undefined || found === null) return identity;
  if (identifier.kind === 'token') found.addOther();
  else if (identity !== null && typeof identity !== 'string') {
    const { sources } = identifier;
    found.addCredential(identity, { rawHeaders, target, value, sources, carriers: caller.table.carriers });
  }
  return identity;
}

const NO_IDENTITIES: readonly Identity[] = [];

/**
 * The identities that were found in a request, and which of them its reply can prove. A reply can prove a credential only
 * if it was the only one of its request. Otherwise the upstream may have accepted another one, such as a session cookie.
 */
class Identified implements KnownAs {
  readonly identities: (Identity | null)[] = [];
  proofs: (Identity | undefined)[] | null = null;
  parts: (SimpleIdentifier | undefined)[] | null = null;
  values: readonly (Identity | null)[] = NO_IDENTITIES;
  readonly credentials: Identity[] = [];
  pathValues: readonly Identity[] = NO_IDENTITIES;
  /** The credential that was found last; null if none. */
  #presented: PresentedCredential | null = null;
  /** Whether the request also has a signed token or a counted field of the body. The reply may depend on that. */
  #hasOther = false;

  get provable(): Identity | null {
    const [only, ...others] = this.credentials;
    if (only === undefined || others.length > 0 || this.#hasOther) return null;
    return this.#presented !== null && isOnlyCredential(this.#presented) ? only : null;
  }

  add(identity: Identity | null, proof?: Identity): void {
    if (proof !== undefined) {
      this.proofs ??= [];
      this.proofs[this.identities.length] = proof;
    }
    this.identities.push(identity);
  }

  addPart(identity: Identity, part: SimpleIdentifier): void {
    this.parts ??= [];
    this.parts[this.identities.length] = part;
    this.add(identity);
  }

  addCredential(identity: Identity, presented: PresentedCredential): void {
    if (!this.credentials.some(({ digest }) => digest === identity.digest)) this.credentials.push(identity);
    this.#presented = presented;
  }

  addOther(): void {
    this.#hasOther = true;
  }

  addPathValue(value: Identity): void {
    this.pathValues = [...this.pathValues, value];
  }

  /**
   * Makes the reply prove nothing. Applications answer some requests, such as OPTIONS, without checking credentials.
   */
  proveNothing(): void {
    this.credentials.length = 0;
    this.pathValues = NO_IDENTITIES;
  }
}
