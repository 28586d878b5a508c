/** One-time codes of authenticator apps (TOTP, RFC 6238): HMAC-SHA-1, six digits, a new code every 30 seconds. Pure. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Millis } from '#shared/clock.ts';

const STEP: Millis = 30_000;
const DIGITS = 6;
/** Accepted steps before and after, because the clock of a phone may be half a minute off, and typing takes time. */
const STEPS_OFF = [-1, 0, 1] as const;

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export function stepAt(now: Millis): number {
  return Math.floor(now / STEP);
}

/** Returns the code of one step, see RFC 4226 for the truncation. */
export function totpCode(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac('sha1', secret).update(counter).digest();
  const offset = (digest.at(-1) ?? 0) & 0xf;
  const number = digest.readUInt32BE(offset) & 0x7fff_ffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0');
}

/** Compares in constant time. @returns the step of the code; null if it belongs to no step near `now` */
export function stepOf(secret: Uint8Array, code: string, now: Millis): number | null {
  const isCode = /^\d{6}$/.test(code);
  const given = Buffer.from(isCode ? code : '0'.repeat(DIGITS));
  let found: number | null = null;
  for (const off of STEPS_OFF) {
    const step = stepAt(now) + off;
    if (timingSafeEqual(Buffer.from(totpCode(secret, step)), given) && isCode) found = step;
  }
  return found;
}

/** Returns the address that authenticator apps read from a QR code. */
export function totpUri(
  secret: Uint8Array,
  { issuer, account }: { issuer: string; account: string },
): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  const query = [
    `secret=${base32(secret)}`,
    `issuer=${encodeURIComponent(issuer)}`,
    `digits=${DIGITS}`,
    `period=${STEP / 1000}`,
  ];
  return `otpauth://totp/${label}?${query.join('&')}`;
}

/**
 * Encodes bytes by RFC 4648 without padding. Authenticator apps expect this form in an address, and accept it when it
 * is typed.
 */
export function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? [])
    .map((group) => ALPHABET.charAt(Number.parseInt(group.padEnd(5, '0'), 2)))
    .join('');
}
