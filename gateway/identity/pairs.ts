/**
 * Finds one value among the cookies or query parameters of a request. One pass, without allocations for other pairs.
 *
 * Values are percent-decoded, so that another spelling is not another client. Names match every spelling that an
 * application may read as the same name: PHP reads `api.key` as `api_key`, qs and Rack read `[api_key]` so, and ASP.NET
 * ignores case. Otherwise a client could present a key that is not counted.
 */

const TAB = 9;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const PERCENT = 37;
const AMPERSAND = 38;
const PLUS = 43;
const COMMA = 44;
const DOT = 46;
const SEMICOLON = 59;
const EQUALS = 61;
const QUESTION = 63;
const BRACKET = 91;
const CLOSING_BRACKET = 93;
const UNDERSCORE = 95;
const LETTER_U = 117;

/**
 * Calls `visit` with each value that an application may read under this name, and that is not blank.
 *
 * Python accepts a blank between cookies too, and ASP.NET Core a comma.
 *
 * @param field the value of a Cookie field (RFC 6265 4.2.1)
 */
export function eachCookieValue(field: string, name: string, visit: (value: string) => void): void {
  const found = (raw: string): void => {
    const value = cookieText(raw);
    if (value !== '') visit(value);
  };
  const foundWords = (raw: string): void => {
    found(TO_BLANK.exec(raw)?.[0] ?? '');
    found(TO_COMMA.exec(raw)?.[0] ?? '');
  };
  /** The beginning of this cookie, and its last =. -1 before the first one. */
  let begin = -1;
  let equals = -1;
  /** The beginning of the last word. */
  let word = 0;
  let isBetweenWords = true;
  const bytes = bytesOf(field);
  for (let at = 0; at < bytes.length; at++) {
    const code = bytes[at] ?? 0;
    // Inside a word, which most characters are.
    if (code > EQUALS && !isBetweenWords) continue;
    if (code === SEMICOLON) begin = equals = -1;
    if (code === SEMICOLON || code === COMMA || code <= SPACE) {
      isBetweenWords = true;
      continue;
    }
    if (isBetweenWords && code !== EQUALS) word = at;
    isBetweenWords = false;
    if (begin < 0) begin = at;
    if (code !== EQUALS) continue;
    if (equals < 0 && spellingOf(name, bytes, begin, at) !== 'other') {
      const semicolon = field.indexOf(';', at);
      const raw = field.slice(at + 1, semicolon < 0 ? field.length : semicolon);
      found(raw);
      if (HAS_WORDS.test(raw)) foundWords(raw);
    } else if (word > equals && word > begin && spellingOf(name, bytes, word, at) !== 'other') {
      foundWords(field.slice(at + 1));
    }
    equals = at;
  }
}

const HAS_WORDS = /[\t ,]/;
/** A cookie value up to a blank outside quotes. */
const TO_BLANK = /^[\t ]*(?:"(?:[^"\\;]|\\.)*"|[^\t ;]*)/;
const TO_COMMA = /^[\t ]*(?:"(?:[^"\\;]|\\.)*"|[^\t ,;]*)/;

/** Calls `visit` with each value that an application may read under this name, and that is not blank. */
export function eachQueryValue(target: string, name: string, visit: (value: string) => void): void {
  const found = (raw: string): void => {
    const value = withoutBlanks(formText(raw));
    if (value !== '') visit(value);
  };
  eachNamed(target, name, (begin, equals, end, spelling) => {
    found(target.slice(equals + 1, end));
    if (spelling !== 'odd') return;
    // qs splits a pair behind the first `]=`.
    const pair = target.slice(begin, end);
    const split = BRACKET_EQUALS.exec(pair);
    if (split !== null) found(pair.slice(split.index + split[0].length));
  });
}

/** PHP and Node's querystring ignore parameters after this number. */
export const PARAMETERS_MAX = 1000;

/** Why a request is refused whose query nobody reads to its end. Otherwise the rest would be a way past a policy. */
export const TOO_MANY_PARAMETERS = `the query has more than ${PARAMETERS_MAX} parameters; send fewer`;

/** @param target path and query */
export function hasTooManyParameters(target: string): boolean {
  const mark = target.indexOf('?');
  let count = 0;
  if (mark >= 0 && target.length - mark > PARAMETERS_MAX)
    eachPair(bytesOf(target), mark + 1, true, () => count++);
  return count > PARAMETERS_MAX;
}

/** Whether an application may find a parameter under this name, with or without a value. */
export function hasParameter(target: string, name: string): boolean {
  let isFound = false;
  eachNamed(target, name, () => {
    isFound = true;
  });
  return isFound;
}

type VisitPair = (begin: number, equals: number, end: number, spelling: Spelling) => void;

/** Calls `visit` with the places of each pair that an application may read under this name. */
function eachNamed(target: string, name: string, visit: VisitPair): void {
  const mark = target.indexOf('?');
  if (mark < 0) return;
  const bytes = bytesOf(target);
  eachPair(bytes, mark + 1, true, (begin, equals, end) => {
    const spelling = spellingOf(name, bytes, begin, equals);
    if (spelling !== 'other') visit(begin, equals, end, spelling);
  });
  if (!BRACKET_OR_NUL.test(target)) return;
  // qs and PHP do not split at a semicolon, and ignore one behind the name.
  eachPair(bytes, mark + 1, false, (begin, equals, end) => {
    const spelling = spellingOf(name, bytes, begin, equals);
    if (spelling === 'odd') visit(begin, equals, end, spelling);
  });
}

/** Where only some applications end a name. */
const BRACKET_OR_NUL = /[[\]]|%(?:5[bd]|00)/i;
const BRACKET_EQUALS = /(?:\]|%5d)=/i;

/**
 * Calls `visit` with the places of each pair. Without a value, the place of its `=` is its end. Some servers accept a
 * semicolon as separator.
 */
function eachPair(
  bytes: Uint8Array,
  from: number,
  splitsAtSemicolons: boolean,
  visit: (begin: number, equals: number, end: number) => void,
): void {
  let begin = from;
  let equals = -1;
  const end = (at: number): void => {
    if (at > begin) visit(begin, equals < 0 ? at : equals, at);
    begin = at + 1;
    equals = -1;
  };
  for (let at = from; at < bytes.length; at++) {
    const code = bytes[at];
    if (code === EQUALS && equals < 0) equals = at;
    if (code === AMPERSAND || (code === SEMICOLON && splitsAtSemicolons)) end(at);
  }
  end(bytes.length);
}

/** `exact` but for case, or `odd` if only some applications read it as the wanted name. */
type Spelling = 'exact' | 'odd' | 'other';

/**
 * Compares the name of a parameter with the configured one. It ends at the first letter that differs, and decodes no
 * text before, because a client may send many names.
 *
 * Applications drop brackets, blanks and dots, or read them as `_`. Some ignore what follows a bracket behind the name,
 * and PHP ends a name at NUL.
 *
 * @param isEncoded whether the name has escapes, as in a query or a form
 */
export function spellingOf(
  configured: string,
  bytes: Uint8Array,
  begin = 0,
  end = bytes.length,
  isEncoded = true,
): Spelling {
  const wanted = BRACKET_AT.test(configured) ? configured.replace(BRACKETS, '') : configured;
  let matched = 0;
  let read = 0;
  let isExact = true;
  /** Brackets, blanks and dots since the last letter. Each of them may stand for one `_`. */
  let spare = 0;
  let hasBracket = false;
  for (let at = begin; at < end; at += isEncoded ? widthAt(bytes, at) : 1) {
    const code = lowerCase(isEncoded ? codeAt(bytes, at) : (bytes[at] ?? 0));
    isExact &&= code === lowerCase(configured.charCodeAt(read++));
    if (code === 0) break;
    if (isDropped(code)) {
      spare++;
      hasBracket ||= isBracket(code);
      continue;
    }
    if (code !== UNDERSCORE) matched += underscoresAt(wanted, matched, spare);
    if (hasBracket && matched === wanted.length) return 'odd';
    if (code !== lowerCase(phpName(wanted.charCodeAt(matched)))) return 'other';
    matched++;
    if (code === UNDERSCORE) continue;
    spare = 0;
    hasBracket = false;
  }
  if (isExact && read === configured.length) return 'exact';
  matched += underscoresAt(wanted, matched, spare);
  return matched < wanted.length ? 'other' : 'odd';
}

/** Returns how many underscores follow, at most `max`. */
function underscoresAt(wanted: string, from: number, max: number): number {
  let count = 0;
  while (count < max && phpName(wanted.charCodeAt(from + count)) === UNDERSCORE) count++;
  return count;
}

const BRACKET_AT = /[[\]]/;
const BRACKETS = /[[\]]/g;

/** URLSearchParams drops a question mark too, at the start of a query or of a form. */
function isDropped(code: number): boolean {
  return isBracket(code) || code <= SPACE || code === DOT || code === QUESTION;
}

function isBracket(code: number): boolean {
  return code === BRACKET || code === CLOSING_BRACKET;
}

/** Replaces a character as PHP does: characters that a variable name cannot have become `_`. */
function phpName(code: number): number {
  return code === DOT || code === SPACE || code === BRACKET ? UNDERSCORE : code;
}

function lowerCase(code: number): number {
  return code >= 65 && code <= 90 ? code + 32 : code;
}

/**
 * Returns the bytes of a text in which each code unit stands for one. They are read several times faster than the code
 * units of a part of a string.
 */
export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

/** Returns the code that stands at a place of a query or a form. A malformed escape stands for its `%`. */
function codeAt(bytes: Uint8Array, at: number): number {
  const code = bytes[at] ?? 0;
  if (code === PLUS) return SPACE;
  if (code !== PERCENT) return code;
  const escaped = escapeAt(bytes, at);
  return escaped < 0 ? PERCENT : escaped;
}

/** Returns how many bytes stand for this code. */
function widthAt(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== PERCENT || escapeAt(bytes, at) < 0) return 1;
  return isWideAt(bytes, at) ? 6 : 3;
}

/** @returns -1 if the escape is malformed */
function escapeAt(bytes: Uint8Array, at: number): number {
  return isWideAt(bytes, at) ? hexAt(bytes, at + 2, 4) : hexAt(bytes, at + 1, 2);
}

/** Whether it is an escape as ASP.NET reads it, such as `%u005f` for `_`. */
function isWideAt(bytes: Uint8Array, at: number): boolean {
  return lowerCase(bytes[at + 1] ?? 0) === LETTER_U;
}

function hexAt(bytes: Uint8Array, from: number, digits: number): number {
  let value = 0;
  for (let at = from; at < from + digits; at++) {
    const code = lowerCase(bytes[at] ?? 0);
    if (code >= 48 && code <= 57) value = value * 16 + code - 48;
    else if (code >= 97 && code <= 102) value = value * 16 + code - 87;
    else return -1;
  }
  return value;
}

/** Removes quotes, and backslashes inside: some servers read them so, and others keep them as part of the value. */
function cookieText(raw: string): string {
  const text = fieldText(raw);
  const quoted = /^"(.*)"$/.exec(text)?.[1];
  const bare = quoted?.replace(/\\(?:([0-3][0-7]{2})|(.))/g, (_, octal?: string, char = '') =>
    octal === undefined ? char : String.fromCharCode(Number.parseInt(octal, 8)),
  );
  return withoutBlanks(percentDecoded(bare ?? text));
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
  return text.replace(/%([\da-f]{2})|(?:%u[\da-f]{4})+/gi, (escapes, digits?: string) => {
    if (digits !== undefined) return String.fromCharCode(Number.parseInt(digits, 16));
    const units = escapes.slice(2).split(/%u/i);
    const chars = String.fromCharCode(...units.map((unit) => Number.parseInt(unit, 16)));
    return Buffer.from(chars).toString('latin1');
  });
}
