/**
 * Parses request bodies as JSON, whatever their content type. Refuses the key that changes prototypes when it is copied,
 * values that databases cannot store, and deep nesting.
 */

import { badRequest } from '#api/errors.ts';
import { BODY_NAMES_MAX, BODY_VALUES_MAX } from '#api/values/content-limits.ts';
import { excessOf } from './json-counts.ts';

/** The deepest legitimate document, a survey with nested logic groups, is far less deep. */
const DEPTH_MAX = 100;

const MALFORMED = 'Malformed JSON input, please check your request body';
const TOO_MANY_VALUES = `The body has more than ${BODY_VALUES_MAX} values`;

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * @returns undefined for an empty body
 * @throws ApiError bad_request if it is not JSON or breaks a limit
 */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  const excess = excessOf(body, { names: BODY_NAMES_MAX, values: BODY_VALUES_MAX });
  if (excess === 'names') throw badRequest(`The body has more than ${BODY_NAMES_MAX} different keys`);
  if (excess === 'values') throw badRequest(TOO_MANY_VALUES);
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(body));
  } catch (error) {
    throw error instanceof SyntaxError
      ? badRequest(MALFORMED, { error: error.message })
      : badRequest('The body is not UTF-8');
  }
  const problem = problemOf(value);
  if (problem !== null) throw badRequest(problem);
  return value;
}

/** Finds a problem in a value. It is not recursive, so that deep values need no stack. */
function problemOf(root: unknown): string | null {
  const pending: { readonly value: unknown; readonly depth: number }[] = [{ value: root, depth: 0 }];
  let count = 0;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    if (typeof value === 'string') {
      const problem = textProblem(value);
      if (problem !== null) return problem;
    }
    // JSON has no such number, so it would be stored as null.
    if (typeof value === 'number' && !Number.isFinite(value))
      return 'The body contains a number that is too large';
    if (typeof value !== 'object' || value === null) continue;
    if (depth >= DEPTH_MAX) return `The body is nested deeper than ${DEPTH_MAX} levels`;
    const keys = Array.isArray(value) ? [] : Object.keys(value);
    const children: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    count += children.length;
    if (count > BODY_VALUES_MAX) return TOO_MANY_VALUES;
    for (const key of keys) {
      const problem = keyProblem(key);
      if (problem !== null) return problem;
    }
    for (const child of children) pending.push({ value: child, depth: depth + 1 });
  }
  return null;
}

function keyProblem(key: string): string | null {
  return key === '__proto__' ? 'The key "__proto__" is not allowed' : textProblem(key);
}

/** Finds text that cannot be stored. PostgreSQL stores no NUL, and half a surrogate pair is not a character. */
function textProblem(text: string): string | null {
  if (text.includes('\0')) return 'The body contains a NUL character';
  if (!text.isWellFormed()) return 'The body contains half of a surrogate pair';
  return null;
}
