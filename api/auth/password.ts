/** Passwords and the addresses they belong to: the rules of contract auth.md §2, and scrypt at rest. */
import { scrypt, timingSafeEqual } from 'node:crypto';
import type { Random } from '#api/ids.ts';

const PASSWORD_LENGTH_MIN = 8;
const PASSWORD_LENGTH_MAX = 128;
const EMAIL_LENGTH_MAX = 255;

/** OWASP's recommendation of 2024 for scrypt; one hash takes about 60 ms and 64 MiB. */
const COST = { N: 2 ** 16, r: 8, p: 1 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** Why a password is refused, as a sentence for the person who chose it; null when it is fine. */
export function passwordProblem(password: string): string | null {
  const { length } = password;
  if (length < PASSWORD_LENGTH_MIN || length > PASSWORD_LENGTH_MAX) {
    return `a password has ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`;
  }
  if (!/\p{Lu}/u.test(password)) return 'a password needs at least one upper-case letter';
  if (!/\d/.test(password)) return 'a password needs at least one digit';
  return null;
}

/** The address as it is stored, in lower case; null when it is not one. */
export function normalizeEmail(text: string): string | null {
  const email = text.trim().toLowerCase();
  return email.length <= EMAIL_LENGTH_MAX && /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(email) ? email : null;
}

/** @returns `scrypt$N$r$p$salt$hash`, the last two as base64url: everything a later verification needs */
export async function hashPassword(password: string, random: Random): Promise<string> {
  const salt = Buffer.from(random(SALT_BYTES));
  const hash = await derive(password, salt, COST);
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** Compares in constant time. A stored text that is not ours verifies nothing. */
export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const [scheme, N, r, p, salt = '', hash = ''] = stored.split('$');
  if (scheme !== 'scrypt') return false;
  const expected = Buffer.from(hash, 'base64url');
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  const actual = await derive(password, Buffer.from(salt, 'base64url'), cost);
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}

function derive(
  password: string,
  salt: Buffer,
  cost: { readonly N: number; readonly r: number; readonly p: number },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, HASH_BYTES, { ...cost, maxmem: 256 * cost.N * cost.r }, (error, key) => {
      if (error) reject(error);
      else resolve(key);
    });
  });
}
