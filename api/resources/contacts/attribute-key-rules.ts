/** What an attribute key may be called. Pure. */

/** Of one workspace, the default ones included. */
export const ATTRIBUTE_KEYS_MAX = 150;

const KEY_LENGTH_MAX = 255;

/** Too close to keys that every workspace has. */
const reserved: ReadonlySet<string> = new Set(['user_id', 'first_name', 'last_name']);

/** @returns what is wrong with a key that somebody wants to make, as a sentence about it; null when nothing is */
export function keyProblem(key: string): string | null {
  if (key.length > KEY_LENGTH_MAX) return `must not be longer than ${KEY_LENGTH_MAX} characters`;
  if (!/^[a-z][a-z0-9_]*$/.test(key)) {
    return 'must start with a lower-case letter and have only lower-case letters, digits and underscores';
  }
  return reservedProblem(key);
}

/** The same for attribute classes, whose names were never held to a pattern. */
export function reservedProblem(key: string): string | null {
  return reserved.has(key) ? 'is reserved; use the default key instead' : null;
}

/** `favorite_color` -> `Favorite Color` */
export function titleOf(key: string): string {
  return key
    .split('_')
    .filter((word) => word !== '')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');
}
