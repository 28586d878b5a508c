/**
 * Finds the credential that a request presents.
 *
 * The same key is the same identity wherever it is sent. A blank value counts as absent. A request with two different
 * values is refused as ambiguous, because the gateway could count one while the upstream accepts the other.
 */
import { type CredentialSource, type Identifier, partsOf, type SimpleIdentifier } from './identifier.ts';
import {
  AMBIGUOUS,
  cookieValue,
  eachCookieValue,
  eachQueryValue,
  fieldText,
  type PairValue,
  queryValue,
} from './pairs.ts';

type Presented =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'one';
      readonly value: string;
      readonly isCookie: boolean;
    }
  | { readonly kind: 'ambiguous' };

const NONE: Presented = { kind: 'none' };
const TWO: Presented = { kind: 'ambiguous' };

/** Returns the lower-case names of header fields that may carry a credential. */
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

export function carriersOf(identifier: SimpleIdentifier): readonly CredentialSource[] {
  if (identifier.kind === 'credential') return identifier.sources;
  return identifier.kind === 'token' ? identifier.sources.map(({ carrier }) => carrier) : [];
}

export function isInQuery(identifier: SimpleIdentifier): boolean {
  return carriersOf(identifier).some(({ kind }) => kind === 'query');
}

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

export const VALUES_MAX = 16;

/**
 * Returns the different values that a request presents to these sources, at most `VALUES_MAX` + 1.
 *
 * @param rawHeaders alternating names and values, as in node:http
 * @param target of the request, with its query
 */
export function presentedValues(
  rawHeaders: readonly string[],
  sources: readonly CredentialSource[],
  target: string,
): ReadonlySet<string> {
  const values = new Set<string>();
  const add = (value: PairValue): void => {
    if (typeof value === 'string' && values.size <= VALUES_MAX) values.add(value);
  };
  for (const source of sources) if (source.kind === 'query') eachQueryValue(target, source.parameter, add);
  if (values.size > VALUES_MAX) return values;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    for (const source of sources) {
      if (source.kind !== 'cookie') add(valueIn(source, name, value));
      else if (isField(name, 'cookie')) eachCookieValue(value, source.cookie, add);
      if (values.size > VALUES_MAX) return values;
    }
  }
  return values;
}

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
  return fieldText(value ?? '') || null;
}

function bearer(prefix: string, name: string, value: string | undefined): string | null {
  if (!isField(name, 'authorization')) return null;
  // Read only the first word: some upstreams split at spaces and read `Bearer KEY more` as KEY.
  const token = /^\s*bearer[ \t]+(\S+)/i.exec(value ?? '')?.[1];
  // Ignores the case of the prefix, as some upstreams do. Counting a value that is not a key does no harm.
  return token?.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase() ? token : null;
}

export interface PresentedCredential {
  readonly rawHeaders: readonly string[];
  readonly target: string;
  readonly value: string;
  readonly isCookie: boolean;
  readonly carriers: readonly CredentialSource[];
}

/**
 * Whether the request presents no other credential, so that the upstream's reply proves or disproves this one. Other
 * credentials are a cookie (it may be a session), an Authorization field with another value, and any other value that
 * an identifier of the file reads. If the credential is a cookie itself, other cookies are ignored: browsers always
 * send some.
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
