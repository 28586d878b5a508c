/**
 * Finds one value among the cookies or query parameters of a request.
 *
 * Values are percent-decoded, so that another spelling is not another client. Names match every spelling that an
 * application may read as the same name: PHP reads `api.key` as `api_key`, qs and Rack read `[api_key]` so, and ASP.NET
 * ignores case. Otherwise a client could present a key that is not counted.
 */

const TAB = 9;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

/** A word of a cookie with the = behind it. */
const WORD = /(?<=[\0- ,])([^\0- ,=]+)[\0- ,]*=/g;
const SEVERAL_WORDS = /[^\0- ,][\0- ,]+[^\0- ,=]/;
const HAS_WORDS = /[\t ,]/;
/** A cookie value up to a blank outside quotes. */
const TO_BLANK = /^[\t ]*(?:"(?:[^"\\;]|\\.)*"|[^\t ;]*)/;
const TO_COMMA = /^[\t ]*(?:"(?:[^"\\;]|\\.)*"|[^\t ,;]*)/;

/** A cookie or a parameter. */
interface Pair {
  readonly name: Name;
  /** The value of a cookie, or a parameter with its name. */
  readonly text: string;
  /** Whether only some applications divide the field or the query so. */
  readonly isRare: boolean;
}

/** Python accepts a blank between cookies too, and ASP.NET Core a comma. */
const cookiesOf = lastOnly((field) => {
  const cookies: Pair[] = [];
  const add = (name: string, text: string, isRare: boolean) =>
    cookies.push({ name: nameOf(formText(name)), text, isRare });
  let from = 0;
  for (const cookie of field.split(';')) {
    const begin = cookie.search(/[^\0- ,]/);
    const equals = cookie.indexOf('=');
    if (equals >= 0) add(cookie.slice(begin, equals), cookie.slice(equals + 1), false);
    const words = SEVERAL_WORDS.test(cookie) ? cookie.matchAll(WORD) : [];
    for (const { 0: text, 1: word = '', index } of words)
      if (index > begin) add(word, field.slice(from + index + text.length), true);
    from += cookie.length + 1;
  }
  return cookies;
});

/**
 * Calls `visit` with each value that an application may read under this name, and that is not blank.
 *
 * @param field the value of a Cookie field (RFC 6265 4.2.1)
 */
export function eachCookieValue(field: string, name: string, visit: (value: string) => void): void {
  const found = (raw: string): void => {
    const value = cookieText(raw);
    if (value !== '') visit(value);
  };
  const wanted = nameOf(name);
  for (const { name, text, isRare } of cookiesOf(field)) {
    if (spellingOf(wanted, name) === 'other') continue;
    if (!isRare) found(text);
    if (!isRare && !HAS_WORDS.test(text)) continue;
    found(TO_BLANK.exec(text)?.[0] ?? '');
    found(TO_COMMA.exec(text)?.[0] ?? '');
  }
}

/** Calls `visit` with each value that an application may read under this name, and that is not blank. */
export function eachQueryValue(target: string, name: string, visit: (value: string) => void): void {
  const found = (raw: string): void => {
    const value = withoutBlanks(formText(raw));
    if (value !== '') visit(value);
  };
  const wanted = nameOf(name);
  for (const pair of parametersOf(queryOf(target))) {
    const spelling = spellingIn(pair, wanted);
    if (spelling === 'other') continue;
    const equals = pair.text.indexOf('=');
    if (equals >= 0) found(pair.text.slice(equals + 1));
    // qs splits a pair behind the first `]=`.
    const split = spelling === 'odd' ? BRACKET_EQUALS.exec(pair.text) : null;
    if (split !== null) found(pair.text.slice(split.index + split[0].length));
  }
}

/** PHP and Node's querystring ignore parameters after this number. */
export const PARAMETERS_MAX = 1000;

/** Why a request is refused whose query nobody reads to its end. Otherwise the rest would be a way past a policy. */
export const TOO_MANY_PARAMETERS = `the query has more than ${PARAMETERS_MAX} parameters; send fewer`;

/** @param target path and query */
export function hasTooManyParameters(target: string): boolean {
  const query = queryOf(target);
  if (query.length <= PARAMETERS_MAX) return false;
  return query.split(/[&;]+/, PARAMETERS_MAX + 2).filter(Boolean).length > PARAMETERS_MAX;
}

/** Whether an application may find a parameter under this name, with or without a value. */
export function hasParameter(target: string, name: string): boolean {
  const wanted = nameOf(name);
  return parametersOf(queryOf(target)).some((pair) => spellingIn(pair, wanted) !== 'other');
}

function spellingIn({ name, isRare }: Pair, wanted: Name): Spelling {
  const spelling = spellingOf(wanted, name);
  return isRare && spelling === 'exact' ? 'other' : spelling;
}

/** Some servers split at semicolons too. */
const parametersOf = lastOnly((query) => {
  const split = (separator: RegExp, isRare: boolean): readonly Pair[] =>
    query.split(separator).flatMap((text) => {
      const equals = text.indexOf('=');
      const name = nameOf(formText(equals < 0 ? text : text.slice(0, equals)));
      return text === '' ? [] : [{ name, text, isRare }];
    });
  // qs and PHP do not split at a semicolon, and ignore one behind the name.
  const rare = query.includes(';') && BRACKET_OR_NUL.test(query) ? split(/&/, true) : [];
  return [...split(/[&;]/, false), ...rare];
});

type Read = (text: string) => readonly Pair[];

/** Remembers the pairs of the last text, because each policy asks for names of its own. */
function lastOnly(read: Read): Read {
  let last = '';
  let pairs: readonly Pair[] = [];
  return (text) => {
    if (text !== last) pairs = read(text);
    last = text;
    return pairs;
  };
}

function queryOf(target: string): string {
  const mark = target.indexOf('?');
  return mark < 0 ? '' : target.slice(mark + 1);
}

/** Where only some applications end a name. */
const BRACKET_OR_NUL = /[[\]]|%(?:5[bd]|00)/i;
const BRACKET_EQUALS = /(?:\]|%5d)=/i;

/** `exact` but for case, or `odd` if only some applications read it as the wanted name. */
type Spelling = 'exact' | 'odd' | 'other';

const BRACKET = /[[\]]/;
const BRACKETS = /[[\]]/g;
/** URLSearchParams drops a question mark too, at the start of a query or of a form. */
const DROPPED = /[[\]\0- .?]/;

/** Dropped by some, or read as `_`. NUL ends a name for PHP. */
const NO_LETTERS = /\0.*$|[[\]\0- .?_]/gs;

/** A decoded name without regard to case, and its letters, which are compared with many names in a few nanoseconds each. */
export interface Name {
  readonly text: string;
  readonly letters: string;
  readonly hasBracket: boolean;
}

export function nameOf(decoded: string): Name {
  const text = decoded.toLowerCase();
  return { text, letters: text.replace(NO_LETTERS, ''), hasBracket: BRACKET.test(text) };
}

/**
 * Compares the name of a parameter with the configured one.
 *
 * Applications drop brackets, blanks and dots, or read them as `_`. Some ignore what follows a bracket behind the name,
 * and PHP ends a name at NUL.
 */
export function spellingOf({ text: usual, letters }: Name, given: Name): Spelling {
  const sent = given.text;
  if (sent === usual) return 'exact';
  if (given.letters !== letters && !(given.hasBracket && given.letters.startsWith(letters))) return 'other';
  const wanted = usual.replace(BRACKETS, '').replaceAll('.', '_');
  let matched = 0;
  /** Brackets, blanks and dots since the last letter. Each of them may stand for one `_`. */
  let spare = 0;
  let hasBracket = false;
  for (const char of sent) {
    if (char === '\0') break;
    if (DROPPED.test(char)) {
      spare++;
      hasBracket ||= BRACKET.test(char);
      continue;
    }
    if (char !== '_') matched = pastUnderscores(wanted, matched, spare);
    if (hasBracket && matched === wanted.length) return 'odd';
    if (char !== wanted[matched++]) return 'other';
    if (char === '_') continue;
    spare = 0;
    hasBracket = false;
  }
  return pastUnderscores(wanted, matched, spare) < wanted.length ? 'other' : 'odd';
}

/** Returns the place behind the underscores that follow, at most `max` of them. */
function pastUnderscores(wanted: string, from: number, max: number): number {
  let at = from;
  while (at < from + max && wanted[at] === '_') at++;
  return at;
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
  // JavaScript's own function takes less than half the time, but reads %u as UTF-16.
  if (!/%u/i.test(text)) return unescape(text);
  return text.replace(/%([\da-f]{2})|(?:%u[\da-f]{4})+/gi, (escapes, digits?: string) => {
    if (digits !== undefined) return String.fromCharCode(Number.parseInt(digits, 16));
    const units = escapes.slice(2).split(/%u/i);
    const chars = String.fromCharCode(...units.map((unit) => Number.parseInt(unit, 16)));
    return Buffer.from(chars).toString('latin1');
  });
}
