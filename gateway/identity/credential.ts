/**
 * Finds the credentials that a request presents.
 *
 * The same key is the same identity wherever it is sent. A blank value counts as absent. A request with two different
 * values is refused as ambiguous, because the gateway could count one while the upstream accepts the other.
 */
import { type CredentialSource, type Identifier, partsOf, type SimpleIdentifier } from './identifier.ts';
import { eachCookieValue, eachQueryValue, fieldText } from './pairs.ts';

/** More different values than these are not told apart. */
export const VALUES_MAX = 16;

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

/**
 * Returns the different values that a request presents to these sources, at most `VALUES_MAX` + 1.
 *
 * @param rawHeaders alternating names and values, as in node:http
 * @param target of the request, with its query
 */
export function presentedValues(
  rawHeaders: readonly string[],
  sources: readonly CredentialSource[],
  target = '',
): readonly string[] {
  const values: string[] = [];
  const add = (value: string | null): void => {
    if (value !== null && values.length <= VALUES_MAX && !values.includes(value)) values.push(value);
  };
  for (const source of sources) if (source.kind === 'query') eachQueryValue(target, source.parameter, add);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    for (const source of sources) {
      if (source.kind === 'header') add(headerValue(source.header, name, value));
      else if (source.kind === 'bearer') add(bearer(source.prefix, name, value));
      else if (source.kind === 'cookie' && isField(name, 'cookie'))
        eachCookieValue(value, source.cookie, add);
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

function isField(name: string, lower: string): boolean {
  return name.length === lower.length && name.toLowerCase() === lower;
}

function headerValue(header: string, name: string, value: string): string | null {
  return isField(name, header) ? fieldText(value) || null : null;
}

function bearer(prefix: string, name: string, value: string): string | null {
  if (!isField(name, 'authorization')) return null;
  // Read only the first word: some upstreams split at spaces and read `Bearer KEY more` as KEY.
  const token = /^\s*bearer[ \t]+(\S+)/i.exec(value)?.[1];
  // Ignores the case of the prefix, as some upstreams do. Counting a value that is not a key does no harm.
  return token?.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase() ? token : null;
}

export interface PresentedCredential {
  readonly rawHeaders: readonly string[];
  readonly target: string;
  readonly value: string;
  readonly sources: readonly CredentialSource[];
  /** All places in which requests present credentials. */
  readonly carriers: readonly CredentialSource[];
}

/**
 * Whether the request presents no other credential, so that the upstream's reply proves or disproves this one. Other
 * credentials are a cookie (it may be a session), an Authorization field with another value, and any other value that
 * an identifier of the file reads. If the credential is a cookie itself, other cookies are ignored: browsers always
 * send some.
 */
export function isOnlyCredential(presented: PresentedCredential): boolean {
  const { rawHeaders, target, value, sources, carriers } = presented;
  const cookies = sources.filter(({ kind }) => kind === 'cookie');
  const isCookie = presentedValues(rawHeaders, cookies).length > 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (isField(name, 'cookie') && !isCookie) return false;
    if (isField(name, 'authorization') && bearer('', name, rawHeaders[i + 1] ?? '') !== value) return false;
  }
  return presentedValues(rawHeaders, carriers, target).length === 1;
}
