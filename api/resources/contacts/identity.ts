/** What tells one contact from another: its e-mail address, and what an app calls its user. Pure. */
import { normalizeEmail } from '#api/auth/password.ts';
import { USER_ID_LENGTH_MAX } from '#api/content-limits.ts';

/** @returns what is wrong with a value under one of these two keys, as a sentence about it; null for other keys */
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
