/**
 * The names of the parameters of a query. A client chooses how many there are, and the policy file how many are looked
 * for. So a query is read once for all policies: their names form a tree by letters, and most names of a query leave it
 * at one of their first letters. Only names with the letters of a wanted one are compared with it.
 */
import {
  AMPERSAND,
  bytesOf,
  codeAt,
  EQUALS,
  isBracket,
  isDropped,
  lowerCase,
  SEMICOLON,
  spellingOf,
  UNDERSCORE,
  widthAt,
} from './pairs.ts';

/** PHP and Node's querystring ignore parameters after this number. */
export const PARAMETERS_MAX = 1000;

/** Why a request is refused whose query nobody reads to its end. Otherwise the rest would be a way past a policy. */
export const TOO_MANY_PARAMETERS = `the query has more than ${PARAMETERS_MAX} parameters; send fewer`;

interface Letter {
  readonly next: Map<number, Letter>;
  /** The wanted names that end here. */
  readonly names: string[];
}

/** Names of parameters that policies look for. */
export class QueryNames {
  readonly #tree: Letter = { next: new Map(), names: [] };

  constructor(wanted: Iterable<string>) {
    for (const name of new Set(wanted)) {
      let last = this.#tree;
      for (const letter of name.toLowerCase().replace(/[[\]._]/g, '')) {
        const code = letter.charCodeAt(0);
        const next = last.next.get(code) ?? { next: new Map(), names: [] };
        last.next.set(code, next);
        last = next;
      }
      last.names.push(name);
    }
  }

  /**
   * Finds the wanted names under which an application may find a parameter, with or without a value.
   *
   * @param target path and query
   * @returns null if the query has too many parameters
   */
  in(target: string): ReadonlySet<string> | null {
    const found = new Set<string>();
    const mark = target.indexOf('?');
    if (mark < 0) return found;
    const bytes = bytesOf(target);
    let count = 0;
    let isBetween = true;
    for (let at = mark + 1; at < bytes.length; at++) {
      const code = bytes[at];
      if (code === AMPERSAND || code === SEMICOLON) isBetween = true;
      else if (isBetween) {
        isBetween = false;
        if (++count > PARAMETERS_MAX) return null;
        this.#look(bytes, at, found);
      }
    }
    return found;
  }

  /** Adds the wanted names that an application may read at this place. Some end a name at a bracket. */
  #look(bytes: Uint8Array, begin: number, found: Set<string>): void {
    let last = this.#tree;
    let hasBracket = false;
    for (let at = begin; !isNameEnd(bytes, at); at += widthAt(bytes, at)) {
      const code = codeAt(bytes, at);
      if (code === 0) break;
      if (isDropped(code)) {
        hasBracket ||= isBracket(code);
        continue;
      }
      if (hasBracket) compare(last.names, bytes, begin, found);
      hasBracket = false;
      if (code === UNDERSCORE) continue;
      const next = last.next.get(lowerCase(code));
      if (next === undefined) return;
      last = next;
    }
    compare(last.names, bytes, begin, found);
  }
}

const NONE = new QueryNames([]);

/** @param target path and query */
export function hasTooManyParameters(target: string): boolean {
  return target.length > PARAMETERS_MAX && NONE.in(target) === null;
}

function compare(names: readonly string[], bytes: Uint8Array, begin: number, found: Set<string>): void {
  if (names.length === 0) return;
  let end = begin;
  while (!isNameEnd(bytes, end)) end++;
  for (const name of names)
    if (!found.has(name) && spellingOf(name, bytes, begin, end) !== 'other') found.add(name);
}

function isNameEnd(bytes: Uint8Array, at: number): boolean {
  const code = bytes[at];
  return code === undefined || code === EQUALS || code === AMPERSAND || code === SEMICOLON;
}
