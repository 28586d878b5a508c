/**
 * Parses request bodies as JSON, whatever their content type. Refuses the key that changes prototypes when it is copied,
 * text that databases cannot store, deep nesting, and too many values or names.
 */
import { badRequest } from '#api/errors.ts';
import { BODY_NAMES_MAX, BODY_VALUES_MAX } from '#api/values/content-limits.ts';

/** The deepest legitimate document, a survey with nested logic groups, is far less deep. */
const DEPTH_MAX = 100;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
/** Codes of space, tab, line feed, carriage return. */
const BLANK: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * @returns undefined for an empty body
 * @throws ApiError bad_request if it is not JSON or breaks a limit
 */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  refuse(excessOf(body));
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(body));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw badRequest('The body is not UTF-8');
    throw badRequest('Malformed JSON input, please check your request body', { error: error.message });
  }
  refuse(problemOf(value));
  return value;
}

function refuse(problem: string | null): void {
  if (problem !== null) throw badRequest(problem);
}

/**
 * Counts the different names and the values of a JSON text before it is parsed. Names make parsing slow, because V8
 * stores each, and a new shape for each object with other names. Values fill the heap that the garbage collector must
 * visit. An escaped name counts separately from the same name unescaped, and the first value of each list or object is
 * not counted.
 */
function excessOf(text: Buffer): string | null {
  const names = new Set<string>();
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at];
    if (byte === COMMA) {
      values += 1;
      if (values > BODY_VALUES_MAX) return `The body has more than ${BODY_VALUES_MAX} values`;
    } else if (byte === QUOTE) {
      const end = endOfString(text, at);
      let next = end + 1;
      while (BLANK.has(text[next])) next += 1;
      if (text[next] === COLON) names.add(text.toString('latin1', at, end));
      if (names.size > BODY_NAMES_MAX) return `The body has more than ${BODY_NAMES_MAX} different keys`;
      at = next - 1;
    }
  }
  return null;
}

/** @returns the position of the closing quote, or the end of the text */
function endOfString(text: Buffer, opening: number): number {
  let at = opening + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Finds a problem in a value. Its recursion ends at the maximum depth. */
function problemOf(value: unknown, depth = 0): string | null {
  if (typeof value === 'string') return textProblem(value);
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= DEPTH_MAX) return `The body is nested deeper than ${DEPTH_MAX} levels`;
  for (const [key, child] of Object.entries(value)) {
    if (key === '__proto__') return 'The key "__proto__" is not allowed';
    const problem = textProblem(key) ?? problemOf(child, depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

/** Finds text that cannot be stored. PostgreSQL stores no NUL, and half a surrogate pair is not a character. */
function textProblem(text: string): string | null {
  if (text.includes('\0')) return 'The body contains a NUL character';
  if (!text.isWellFormed()) return 'The body contains half of a surrogate pair';
  return null;
}
