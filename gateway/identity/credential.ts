/**
 * Which credential does a request present?
 *
 * The same key counts as the same identity however it is sent. A blank value is none. Two different ones are
 * ambiguous: gateway and upstream could each believe another, so the request is refused rather than guessed at.
 */
import type { CredentialSource, Identifier } from '#gateway/policy/policy.ts';

export type Presented =
  | { readonly kind: 'none' }
  | { readonly kind: 'one'; readonly value: string }
  | { readonly kind: 'ambiguous' };

const NONE: Presented = { kind: 'none' };
const AMBIGUOUS: Presented = { kind: 'ambiguous' };

/** Lower-case names of the headers in which clients may present a credential, `authorization` in any case. */
export function identityHeaders(identifiers: readonly Identifier[]): ReadonlySet<string> {
  const names = new Set(['authorization']);
  for (const identifier of identifiers) {
    if (identifier.kind === 'address') continue;
    for (const source of identifier.sources) if (source.kind === 'header') names.add(source.header);
  }
  return names;
}

/** @param rawHeaders names and values in turn, as node:http gives them */
export function presentedCredential(
  rawHeaders: readonly string[],
  sources: readonly CredentialSource[],
): Presented {
  let found: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    for (const source of sources) {
      const value =
        source.kind === 'header'
          ? headerValue(source.header, name, rawHeaders[i + 1])
          : bearer(source.prefix, name, rawHeaders[i + 1]);
      if (value === null || value === found) continue;
      if (found !== null) return AMBIGUOUS;
      found = value;
    }
  }
  return found === null ? NONE : { kind: 'one', value: found };
}

function headerValue(header: string, name: string, value: string | undefined): string | null {
  if (name.length !== header.length || name.toLowerCase() !== header) return null;
  return value?.trim() || null;
}

function bearer(prefix: string, name: string, value: string | undefined): string | null {
  if (name.length !== 'authorization'.length || name.toLowerCase() !== 'authorization') return null;
  // Only the first word: an upstream that splits at spaces takes `Bearer KEY more` for KEY.
  const token = /^\s*bearer[ \t]+(\S+)/i.exec(value ?? '')?.[1];
  // In any case, because some upstreams accept the prefix so; counting a value that is no key there costs nothing.
  return token?.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase() ? token : null;
}

/**
 * Does an answer to this request speak of this credential alone? Not beside a cookie, which may be a session, and not
 * beside an Authorization field with something else in it.
 *
 * @param rawHeaders names and values in turn, as node:http gives them
 */
export function isOnlyCredential(rawHeaders: readonly string[], credential: string): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length === 'cookie'.length && name.toLowerCase() === 'cookie') return false;
    if (name.length !== 'authorization'.length || name.toLowerCase() !== 'authorization') continue;
    if (bearer('', name, rawHeaders[i + 1]) !== credential) return false;
  }
  return true;
}
