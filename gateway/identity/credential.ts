/**
 * Which credential does a request present?
 *
 * The same key counts as the same identity however it is sent. A blank value is none. Two different ones are
 * ambiguous: gateway and upstream could each believe another, so the request is refused rather than guessed at.
 */
import { type CredentialSource, type Identifier, partsOf, type SimpleIdentifier } from './identifier.ts';
import { AMBIGUOUS, cookieValue, type PairValue, queryValue } from './pairs.ts';

export type Presented =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'one';
      readonly value: string;
      /** It came in a cookie. */
      readonly isCookie: boolean;
    }
  | { readonly kind: 'ambiguous' };

const NONE: Presented = { kind: 'none' };
const TWO: Presented = { kind: 'ambiguous' };

/** Lower-case names of the headers in which clients may present a credential, `authorization` in any case. */
export function identityHeaders(identifiers: readonly Identifier[]): ReadonlySet<string> {
  const names = new Set(['authorization']);
  for (const identifier of identifiers.flatMap(partsOf)) {
    for (const source of carriersOf(identifier)) {
      if (source.kind === 'header') names.add(source.header);
      else if (source.kind === 'cookie') names.add('cookie');
    }
  }
  return names;
}

/** Where what an identifier counts is presented. */
export function carriersOf(identifier: SimpleIdentifier): readonly CredentialSource[] {
  switch (identifier.kind) {
    case 'credential':
      return identifier.sources;
    case 'token':
      return identifier.sources.map(({ carrier }) => carrier);
    case 'address':
    case 'path':
      return [];
    default:
      return identifier satisfies never;
  }
}

/**
 * @param rawHeaders names and values in turn, as node:http gives them
 * @param target of the request, with its query
 */
export function presentedCredential(
  rawHeaders: readonly string[],
  sources: readonly CredentialSource[],
  target = '',
): Presented {
  let found: string | null = null;
  let isCookie = false;
  for (const source of sources) {
    if (source.kind !== 'query') continue;
    const value = queryValue(target, source.parameter);
    if (value === null || value === found) continue;
    if (value === AMBIGUOUS || found !== null) return TWO;
    found = value;
  }
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    for (const source of sources) {
      const value = valueIn(source, name, rawHeaders[i + 1]);
      if (value === null) continue;
      if (source.kind === 'cookie') isCookie = true;
      if (value === found) continue;
      if (value === AMBIGUOUS || found !== null) return TWO;
      found = value;
    }
  }
  return found === null ? NONE : { kind: 'one', value: found, isCookie };
}

/** So many different values of one identifier are looked at. */
export const VALUES_MAX = 16;

/**
 * All different values that a request presents to these sources, at most one more than `VALUES_MAX`.
 *
 * @param rawHeaders names and values in turn, as node:http gives them
 * @param target of the request, with its query
 */
export function presentedValues(
  rawHeaders: readonly string[],
  sources: readonly CredentialSource[],
  target: string,
): ReadonlySet<string> {
  const values = new Set<string>();
  const add = (value: PairValue): boolean => {
    if (typeof value === 'string') values.add(value);
    return values.size > VALUES_MAX;
  };
  const parameters = sources.filter((source) => source.kind === 'query');
  const query = parameters.length === 0 || !target.includes('?') ? '' : target.slice(target.indexOf('?') + 1);
  for (const pair of query.split(/[&;]/)) {
    for (const { parameter } of parameters) if (add(queryValue(`?${pair}`, parameter))) return values;
  }
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const fields = isField(name, 'cookie') ? (rawHeaders[i + 1] ?? '').split(';') : [rawHeaders[i + 1]];
    for (const source of sources)
      for (const field of fields) if (add(valueIn(source, name, field))) return values;
  }
  return values;
}

/** What two different ones are called where they are refused. */
export function ambiguityOf(identifier: SimpleIdentifier): string {
  const { name } = identifier;
  return carriersOf(identifier).every(({ kind }) => kind === 'header' || kind === 'bearer')
    ? 'the request presents two different API keys; send one'
    : `the request presents two different values of ${name}; send one`;
}

function valueIn(source: CredentialSource, name: string, value: string | undefined): PairValue {
  switch (source.kind) {
    case 'header':
      return headerValue(source.header, name, value);
    case 'bearer':
      return bearer(source.prefix, name, value);
    case 'cookie':
      return isField(name, 'cookie') ? cookieValue(value ?? '', source.cookie) : null;
    case 'query':
      return null;
    default:
      return source satisfies never;
  }
}

function isField(name: string, lower: string): boolean {
  return name.length === lower.length && name.toLowerCase() === lower;
}

function headerValue(header: string, name: string, value: string | undefined): string | null {
  if (!isField(name, header)) return null;
  return value?.trim() || null;
}

function bearer(prefix: string, name: string, value: string | undefined): string | null {
  if (!isField(name, 'authorization')) return null;
  // Only the first word: an upstream that splits at spaces takes `Bearer KEY more` for KEY.
  const token = /^\s*bearer[ \t]+(\S+)/i.exec(value ?? '')?.[1];
  // In any case, because some upstreams accept the prefix so; counting a value that is no key there costs nothing.
  return token?.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase() ? token : null;
}

/** A credential, and the request that presents it. */
export interface PresentedCredential {
  /** Names and values in turn, as node:http gives them. */
  readonly rawHeaders: readonly string[];
  /** With the query. */
  readonly target: string;
  readonly value: string;
  /** It came in a cookie. */
  readonly isCookie: boolean;
  /** Where the identifiers of the whole file look for credentials. */
  readonly carriers: readonly CredentialSource[];
}

/**
 * Does an answer to this request speak of this credential alone? Not beside a cookie, which may be a session, not beside
 * an Authorization field with something else in it, and not beside another value that any identifier of the file reads.
 * A credential that is a cookie itself has others beside it in every browser.
 */
export function isOnlyCredential(presented: PresentedCredential): boolean {
  const { rawHeaders, target, value, isCookie, carriers } = presented;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (isField(name, 'cookie') && !isCookie) return false;
    if (!isField(name, 'authorization')) continue;
    if (bearer('', name, rawHeaders[i + 1]) !== value) return false;
  }
  return presentedValues(rawHeaders, carriers, target).size === 1;
}
