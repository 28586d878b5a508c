/** Decides which attributes of a client are stored, and with which text. Pure. */
import { normalizeEmail } from '#api/auth/password.ts';
import { USER_ID_LENGTH_MAX } from '#api/values/content-limits.ts';
import { readTimestamp } from '#api/values/timestamps.ts';
import { ATTRIBUTE_KEYS_MAX, keyProblem } from './attribute-key-rules.ts';
import type { AttributeKey } from './attribute-key-store.ts';

/** Values by attribute key, as clients send them. */
export type GivenAttributes = Readonly<Record<string, string | number | boolean>>;

interface AttributePlan {
  /** Texts to store, by attribute key, for existing keys and for `newKeys`. */
  readonly values: ReadonlyMap<string, string>;
  readonly newKeys: readonly string[];
  /** Why attributes were left out, one sentence each. */
  readonly errors: readonly string[];
}

const VALUE_LENGTH_MAX = 2_048;
/** Maximum number of sentences. Further ones are only counted. */
const ERRORS_MAX = 50;
/** Maximum number of characters of an invalid key that an error repeats. */
const SHOWN_LENGTH_MAX = 64;

/** Attributes that identify the contact, so they cannot be set. */
const identities: ReadonlySet<string> = new Set(['userId', 'id']);

export function planAttributes(given: GivenAttributes, known: readonly AttributeKey[]): AttributePlan {
  const knownByName = new Map(known.map((key) => [key.key, key]));
  const values = new Map<string, string>();
  const newKeys: string[] = [];
  const problems: string[] = [];
  for (const [name, value] of Object.entries(given)) {
    if (identities.has(name) || isBlankLanguage(name, value)) continue;
    const key = knownByName.get(name);
    const text = String(value);
    const problem =
      valueProblem(text, key) ??
      (key === undefined ? newKeyProblem(name, known.length + newKeys.length) : null);
    if (problem !== null) {
      problems.push(`The attribute "${shown(name)}" was not stored: ${problem}`);
      continue;
    }
    if (key === undefined) newKeys.push(name);
    values.set(name, text);
  }
  return { values, newKeys, errors: bounded(problems) };
}

/** Whether a value looks like an address, as `email` must wherever it is sent. Only a mail could prove more. */
export function isEmail(value: unknown): boolean {
  return typeof value === 'string' && value.length >= 3 && value.includes('@');
}

/** Whether the value is a blank language, which is ignored silently. */
function isBlankLanguage(name: string, value: unknown): boolean {
  return name === 'language' && (typeof value !== 'string' || value.trim() === '');
}

function newKeyProblem(name: string, count: number): string | null {
  const problem = keyProblem(name);
  if (problem !== null) return `its key ${problem}`;
  if (count < ATTRIBUTE_KEYS_MAX) return null;
  return `the workspace has ${ATTRIBUTE_KEYS_MAX} attribute keys, which is the maximum`;
}

/** Keys that clients created take any text. Keys for numbers or dates take only those. */
export function valueProblem(text: string, key: AttributeKey | undefined): string | null {
  if (text.length > VALUE_LENGTH_MAX) return `its value is longer than ${VALUE_LENGTH_MAX} characters`;
  if (key?.dataType === 'number' && (text.trim() === '' || !Number.isFinite(Number(text)))) {
    return 'its value must be a number';
  }
  if (key?.dataType === 'date' && readTimestamp(text) === null) return 'its value must be an ISO 8601 date';
  return null;
}

export function shown(name: string): string {
  return name.length > SHOWN_LENGTH_MAX ? `${name.slice(0, SHOWN_LENGTH_MAX).toWellFormed()}…` : name;
}

function bounded(problems: readonly string[]): readonly string[] {
  if (problems.length <= ERRORS_MAX) return problems;
  return [...problems.slice(0, ERRORS_MAX), `${problems.length - ERRORS_MAX} more were not stored`];
}

/**
 * Checks the values of `email` and `userId`. @returns the problem, as the end of a sentence; null when there is none
 */
export function identityProblem(key: string, value: string): string | null {
  switch (key) {
    case 'email':
      return normalizeEmail(value) === null ? 'must be an e-mail address' : null;
    case 'userId':
      return value === '' || value.length > USER_ID_LENGTH_MAX
        ? `must have 1 to ${USER_ID_LENGTH_MAX} characters`
        : null;
    default:
      return null;
  }
}
