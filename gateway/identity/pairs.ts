/**
 * Finds one value among the cookies or query parameters of a request. One pass, without allocations for other pairs.
 *
 * Values are percent-decoded, so that another spelling is not another client. Names match every spelling that an
 * application may read as the same name: PHP reads `api.key` as `api_key`, qs and Rack read `[api_key]` so, and ASP.NET
 * ignores case in query parameters. Otherwise a client could present a key that is not counted.
 */

export const AMBIGUOUS = Symbol('ambiguous');

/** The value of a pair. null if it is absent or blank; AMBIGUOUS for two different values. */
export type PairValue = string | null | typeof AMBIGUOUS;

const TAB = 9;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const AMPERSAND = 38;
const DOT = 46;
const SEMICOLON = 59;
const EQUALS = 61;
const QUESTION = 63;
const BRACKET = 91;
const CLOSING_BRACKET = 93;
const UNDERSCORE = 95;

/** @param field the value of a Cookie field (RFC 6265 4.2.1) */
export function cookieValue(field: string, name: string): PairValue {
  let found: string | null = null;
  let equals = -1;
  let begin = 0;
  for (let at = 0; at <= field.length; at++) {
    // charCodeAt returns NaN at the end.
    const code = field.charCodeAt(at);
    if (code === EQUALS && equals < 0) equals = at;
    if (code !== SEMICOLON && at < field.length) continue;
    while (field.charCodeAt(begin) <= SPACE) begin++;
    if (isCookieNamed(field, begin, equals, name)) {
      const value = cookieText(field.slice(equals + 1, at));
      if (value !== '' && found !== null && value !== found) return AMBIGUOUS;
      found = value || found;
    }
    begin = at + 1;
    equals = -1;
  }
  return found;
}

export function queryValue(target: string, name: string): PairValue {
  let found: PairValue = null;
  eachQueryValue(target, name, (value) => {
    found = found === null || found === value ? value : AMBIGUOUS;
  });
  return found;
}

/** Calls `visit` with each value that an application may read under this name, and that is not blank. */
export function eachQueryValue(target: string, name: string, visit: (value: string) => void): void {
  const mark = target.indexOf('?');
  if (mark < 0) return;
  const found = (raw: string): void => {
    const value = withoutBlanks(formText(raw));
    if (value !== '') visit(value);
  };
  eachPair(target, mark + 1, true, (begin, equals, end) => {
    if (spellingOf(formText(target.slice(begin, equals)), name) !== 'other')
      found(target.slice(equals + 1, end));
  });
  if (!BRACKET_OR_NUL.test(target)) return;
  // qs and PHP do not split at a semicolon, and ignore one behind the name. qs splits a pair behind the first `]=`.
  eachPair(target, mark + 1, false, (begin, equals, end) => {
    if (spellingOf(formText(target.slice(begin, equals)), name) !== 'odd') return;
    const pair = target.slice(begin, end);
    found(pair.slice(equals - begin + 1));
    const split = BRACKET_EQUALS.exec(pair);
    if (split !== null) found(pair.slice(split.index + split[0].length));
  });
}

const BRACKET_OR_NUL = /[[\]]|%(?:5[bd]|00)/i;
const BRACKET_EQUALS = /(?:\]|%5d)=/i;

/** Calls `visit` with the places of each pair that has a `=`. Some servers accept a semicolon as separator. */
function eachPair(
  text: string,
  from: number,
  splitsAtSemicolons: boolean,
  visit: (begin: number, equals: number, end: number) => void,
): void {
  let begin = from;
  let equals = -1;
  for (let at = from; at <= text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === EQUALS && equals < 0) equals = at;
    const ends = code === AMPERSAND || (code === SEMICOLON && splitsAtSemicolons) || at === text.length;
    if (!ends) continue;
    if (equals >= 0) visit(begin, equals, at);
    begin = at + 1;
    equals = -1;
  }
}

/** Whether a cookie has this name. PHP ignores spaces before a cookie name. All servers ignore spaces after it. */
function isCookieNamed(text: string, begin: number, equals: number, name: string): boolean {
  let at = begin;
  let matched = 0;
  for (; at < equals && matched < name.length; at++, matched++) {
    if (phpName(text.charCodeAt(at)) !== phpName(name.charCodeAt(matched))) return false;
  }
  while (at < equals && text.charCodeAt(at) <= SPACE) at++;
  return at === equals && matched === name.length;
}

/** `exact` but for case, or `odd` if only some applications read it as the wanted name. */
type Spelling = 'exact' | 'odd' | 'other';

/**
 * Compares the decoded name of a parameter with the wanted one.
 *
 * Applications drop brackets, blanks and dots, or read them as `_`. Some ignore what follows a bracket behind the name,
 * and PHP ends a name at NUL.
 */
export function spellingOf(name: string, wanted: string): Spelling {
  let matched = 0;
  /** Brackets, blanks and dots since the last letter. Each of them may stand for one `_`. */
  let spare = 0;
  let hasBracket = false;
  const skipUnderscores = (): void => {
    for (; spare > 0 && phpName(wanted.charCodeAt(matched)) === UNDERSCORE; matched++) spare--;
  };
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code === 0) break;
    if (isDropped(code)) {
      spare++;
      hasBracket ||= code === BRACKET || code === CLOSING_BRACKET;
      continue;
    }
    if (code !== UNDERSCORE) skipUnderscores();
    if (hasBracket && matched === wanted.length) return 'odd';
    if (lowerCase(code) !== lowerCase(phpName(wanted.charCodeAt(matched)))) return 'other';
    matched++;
    if (code === UNDERSCORE) continue;
    spare = 0;
    hasBracket = false;
  }
  skipUnderscores();
  if (matched < wanted.length) return 'other';
  return name.toLowerCase() === wanted.toLowerCase() ? 'exact' : 'odd';
}

/** URLSearchParams drops a question mark too, at the start of a query or of a form. */
function isDropped(code: number): boolean {
  const isBracket = code === BRACKET || code === CLOSING_BRACKET;
  return isBracket || code <= SPACE || code === DOT || code === QUESTION;
}

/** Replaces a character as PHP does: characters that a variable name cannot have become `_`. */
function phpName(code: number): number {
  return code === DOT || code === SPACE || code === BRACKET ? UNDERSCORE : code;
}

function lowerCase(code: number): number {
  return code >= 65 && code <= 90 ? code + 32 : code;
}

/** Quotes are removed: some servers drop them and others keep them as part of the value. */
function cookieText(raw: string): string {
  return withoutBlanks(percentDecoded(fieldText(raw).replace(/^"(.*)"$/, '$1')));
}

/** Decodes a name or a value of a query or a form. Each code unit of the result stands for one byte. */
export function formText(raw: string): string {
  return percentDecoded(raw.replaceAll('+', ' '));
}

/**
 * Removes blanks around the value of a header field. Some applications also remove the byte A0, a blank in Latin-1.
 * Behind another byte above 7F it is the end of a character in UTF-8, such as à.
 */
export function fieldText(value: string): string {
  const bare = value.trim();
  return bare.charCodeAt(bare.length - 1) > 0x7f ? withoutBlanks(value.trimStart()) : bare;
}

/** Removes ASCII blanks around a text in which each code unit stands for one byte. */
function withoutBlanks(text: string): string {
  let from = 0;
  let to = text.length;
  while (isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === SPACE || (code >= TAB && code <= CARRIAGE_RETURN);
}

/** Decodes byte by byte and leaves malformed escapes as they are. */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
