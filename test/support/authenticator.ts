/** An authenticator app: the codes for an account that has a second factor. */
import { totpSecret } from '#api/auth/second-factor.ts';
import { stepAt, totpCode } from '#api/auth/totp.ts';
import type { TestApi } from './api-app.ts';

/** Base32, RFC 4648. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The code that the app shows now. @param off steps of 30 seconds before or after */
export async function codeOf({ context }: TestApi, email: string, off = 0): Promise<string> {
  const { db, signer, clock } = context;
  const { id } = await db
    .selectFrom('users')
    .select('id')
    .where('email', '=', email)
    .executeTakeFirstOrThrow();
  const secret = await totpSecret(db, signer, id);
  if (secret === null) throw new Error(`${email} has no second factor`);
  return totpCode(secret, stepAt(clock()) + off);
}

/** The code of the app into which somebody typed this key, by the real time. @param off steps before or after */
export function codeOfKey(key: string, off = 0): string {
  const bits = [...key.replaceAll(/\s/g, '')]
    .map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, '0'))
    .join('');
  const secret = (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
  return totpCode(Uint8Array.from(secret), stepAt(Date.now()) + off);
}

/** A code that is wrong now. */
export async function wrongCodeOf(api: TestApi, email: string): Promise<string> {
  const right = await Promise.all([-1, 0, 1].map((off) => codeOf(api, email, off)));
  return ['000000', '000001', '000002', '000003'].find((code) => !right.includes(code)) ?? '';
}
