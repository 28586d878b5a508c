/** Hosts as they are named in the policy file: whole names, and wildcards for the names below. */
import { domainToASCII } from 'node:url';
import { canonicalHost } from '#gateway/http/host.ts';
import { Mistake } from './problems.ts';

const WILDCARD = '*.';
const BEYOND_ASCII = /[^\0-\x7f]/;
/** Characters that end a host in a URL. domainToASCII drops what follows them, and decodes `%`. */
const NO_HOST = /[\s:/?#@\\%[\]]/;

export class HostNames {
  readonly #names = new Set<string>();
  /** The names behind `*.`, which match one or more labels. */
  readonly #parents = new Set<string>();

  /** @throws Mistake */
  add(text: string): void {
    const isWildcard = text.startsWith(WILDCARD);
    const name = canonicalName(isWildcard ? text.slice(WILDCARD.length) : text);
    if (name === null || (isWildcard && isAddress(name)))
      throw new Mistake(
        `"${text.slice(0, 60)}" is not a host`,
        'write it without scheme, port and path, such as shop.example.org, "*.example.org" or "[::1]"',
      );
    (isWildcard ? this.#parents : this.#names).add(name);
  }

  /** @param host in canonical form */
  has(host: string): boolean {
    return this.entryFor(host) !== null;
  }

  /**
   * Returns the longest entry that names a host, in canonical form; null if none does.
   *
   * @param host in canonical form
   */
  entryFor(host: string): string | null {
    if (this.#names.has(host)) return host;
    if (this.#parents.size === 0) return null;
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const parent = host.slice(dot + 1);
      if (this.#parents.has(parent)) return WILDCARD + parent;
    }
    return null;
  }
}

function canonicalName(text: string): string | null {
  if (!BEYOND_ASCII.test(text)) return canonicalHost(text);
  return NO_HOST.test(text) ? null : canonicalHost(domainToASCII(text));
}

/** The last label of an IPv4 address is a number, which no name ends with. */
function isAddress(name: string): boolean {
  return name.startsWith('[') || /\d$/.test(name.slice(name.lastIndexOf('.') + 1));
}
