/**
 * The names of the parameters of a query. A client chooses how many there are, and the policy file how many are looked
 * for. So a query is read once for all policies, and its names are kept in a table by their letters. Only names with
 * the letters of the wanted one are compared with it.
 */
import { BRACKET_OR_NUL, eachPair, formText, isBracket, isDropped, lowerCase, spellingOf } from './pairs.ts';

/** PHP and Node's querystring ignore parameters after this number. */
export const PARAMETERS_MAX = 1000;

/** Why a request is refused whose query nobody reads to its end. Otherwise the rest would be a way past a policy. */
export const TOO_MANY_PARAMETERS = `the query has more than ${PARAMETERS_MAX} parameters; send fewer`;

/** @param target path and query */
export function hasTooManyParameters(target: string): boolean {
  if (target.length <= PARAMETERS_MAX) return false;
  let count = 0;
  eachPair(target, queryOf(target), true, () => {
    count++;
  });
  return count > PARAMETERS_MAX;
}

/** Whether an application may find a parameter of one of these names, with or without a value. */
export function hasQueryParameter(target: string, wanted: readonly string[]): boolean {
  if (!target.includes('?')) return false;
  if (latest?.target !== target) latest = { target, names: namesIn(target), found: new Map() };
  const { names, found } = latest;
  return wanted.some((name) => {
    let isThere = found.get(name);
    if (isThere === undefined) {
      isThere = names.get(lettersOf(name))?.some((sent) => spellingOf(sent, name) !== 'other') ?? false;
      found.set(name, isThere);
    }
    return isThere;
  });
}

interface ReadQuery {
  readonly target: string;
  /** The decoded names by the letters that spellingOf compares. */
  readonly names: ReadonlyMap<string, readonly string[]>;
  readonly found: Map<string, boolean>;
}

/** The query that was read last, because the policies of a request ask one after the other. */
let latest: ReadQuery | null = null;

function namesIn(target: string): ReadQuery['names'] {
  const sent = new Set<string>();
  const add = (begin: number, equals: number): void => {
    sent.add(formText(target.slice(begin, equals)));
  };
  eachPair(target, queryOf(target), true, add);
  // qs and PHP do not split at a semicolon, and ignore one behind the name.
  if (BRACKET_OR_NUL.test(target)) eachPair(target, queryOf(target), false, add);
  const names = new Map<string, string[]>();
  for (const name of sent)
    eachSpelledBy(name, (letters) => {
      const same = names.get(letters);
      if (same === undefined) names.set(letters, [name]);
      else same.push(name);
    });
  return names;
}

function queryOf(target: string): number {
  const mark = target.indexOf('?');
  return mark < 0 ? target.length : mark + 1;
}

const UNDERSCORE = 95;
/** No name in a policy file is longer. */
const LETTERS_MAX = 100;

/** Calls `visit` with the letters of a name, and with those in front of each bracket. */
function eachSpelledBy(name: string, visit: (letters: string) => void): void {
  let letters = '';
  let hasBracket = false;
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code === 0) break;
    if (isDropped(code)) {
      hasBracket ||= isBracket(code);
      continue;
    }
    if (hasBracket) visit(letters);
    hasBracket = false;
    if (code === UNDERSCORE) continue;
    letters += String.fromCharCode(lowerCase(code));
    if (letters.length > LETTERS_MAX) return;
  }
  visit(letters);
}

function lettersOf(wanted: string): string {
  return wanted.toLowerCase().replace(/[[\]._]/g, '');
}
