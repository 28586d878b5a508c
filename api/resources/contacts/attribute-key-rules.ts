/** The rules for names of attribute keys. Pure. */

/** Maximum number of keys in a workspace, including the default ones. */
export const ATTRIBUTE_KEYS_MAX = 150;

const KEY_LENGTH_MAX = 255;

/** Names that are too similar to the default keys. */
const reserved: ReadonlySet<string> = new Set(['user_id', 'first_name', 'last_name']);

/** @returns why a new key is refused, as the end of a sentence about it; null if it is valid */
export function keyProblem(key: string): string | null {
  if (key.length > KEY_LENGTH_MAX) return `must not be longer than ${KEY_LENGTH_MAX} characters`;
  if (!/^[a-z][a-z0-9_]*$/.test(key)) {
    return 'must start with a lower-case letter and have only lower-case letters, digits and underscores';
  }
  return reservedProblem(key);
}

/** Checks the name of an attribute class, which never had to match a pattern. */
export function reservedProblem(key: string): string | null {
  return reserved.has(key) ? 'is reserved; use the default key instead' : null;
}

/** Turns `favorite_color` into `Favorite Color`. */
export function titleOf(key: string): string {
  return key
    .split('_')
    .filter((word) => word !== '')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');
}
