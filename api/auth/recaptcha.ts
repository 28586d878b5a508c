/**
 * reCAPTCHA. Pages get a token with the site key in the workspace state. The token comes with the response, and
 * Google's service returns a score for it.
 *
 * This is the only file that knows the service. Without keys no response needs a token, because nobody could have
 * one.
 */

import { isRecord } from '#api/values/schemas.ts';
import type { Millis } from '#shared/clock.ts';
import { timeLimit } from '#shared/within.ts';

export const recaptchaVariables = [
  {
    name: 'RECAPTCHA_SITE_KEY',
    meaning: 'site key of reCAPTCHA v3, for surveys that require it; both keys unset: no response is checked',
  },
  { name: 'RECAPTCHA_SECRET_KEY', meaning: 'secret key of reCAPTCHA v3' },
] as const;

type Name = (typeof recaptchaVariables)[number]['name'];

export interface RecaptchaKeys {
  readonly siteKey: string;
  readonly secretKey: string;
}

export interface Recaptcha {
  /** The key with which pages get tokens; null if not configured. */
  readonly siteKey: string | null;
  /**
   * @param threshold the lowest score that passes, from 0 to 1
   * @returns false also if the service does not answer: a survey that requires a proof accepts no response without one
   */
  verify(token: string, threshold: number): Promise<boolean>;
}

const VERIFY_URL = 'https://www.google.com/recaptcha/api/siteverify';
const VERIFY_TIMEOUT: Millis = 5_000;
/** Tokens have about two thousand characters. */
const TOKEN_LENGTH_MAX = 16_384;

export function createRecaptcha(keys: RecaptchaKeys | null, verifyUrl = VERIFY_URL): Recaptcha {
  if (keys === null) return { siteKey: null, verify: async () => false };
  const { secretKey, siteKey } = keys;
  return {
    siteKey,
    async verify(token, threshold) {
      if (token.length > TOKEN_LENGTH_MAX) return false;
      try {
        const reply = await fetch(verifyUrl, {
          method: 'POST',
          body: new URLSearchParams({ secret: secretKey, response: token }),
          redirect: 'error',
          signal: timeLimit(VERIFY_TIMEOUT),
        });
        const result: unknown = await reply.json();
        if (!isRecord(result) || result.success !== true) return false;
        return typeof result.score === 'number' && result.score >= threshold;
      } catch {
        return false;
      }
    },
  };
}

/** @returns null if both are unset */
export function readRecaptchaKeys(
  parse: <T>(name: Name, fallback: T, parser: (value: string) => T) => T,
): RecaptchaKeys | null {
  const siteKey = parse('RECAPTCHA_SITE_KEY', '', parseKey);
  return parse('RECAPTCHA_SECRET_KEY', null, (value) => {
    const secretKey = parseKey(value);
    if (siteKey === '' && secretKey === '') return null;
    if (siteKey === '' || secretKey === '') {
      throw new Error(
        'a key pair has two parts; give RECAPTCHA_SITE_KEY and RECAPTCHA_SECRET_KEY, or leave both unset',
      );
    }
    return { siteKey, secretKey };
  });
}

/** Parses a key. The message does not repeat the key, which may be the secret one. @throws Error */
function parseKey(value: string): string {
  if (!/^[\w-]{0,200}$/.test(value))
    throw new Error('not a key; give letters, digits, hyphens and underscores');
  return value;
}
