/**
 * Reads a claim of a JSON Web Token (RFC 7519) in compact form after verifying its signature (RFC 7515). The key
 * determines the algorithm, so a token cannot choose a weaker one.
 *
 * Verification is synchronous, unlike in the libraries, because a request is decided within one event-loop tick. Cheap
 * checks come before the signature. The tests compare the results with jose.
 */
import { verify } from 'node:crypto';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { KeySet, SigningKey, TokenSource } from './identifier.ts';

export interface Verified {
  readonly value: string;
  /** The text of the claim that names the client's plan; null if there is none. */
  readonly plan: string | null;
  /** Milliseconds since the epoch. */
  readonly from: Millis;
  readonly until: Millis;
}

type TokenRules = Pick<TokenSource, 'claim' | 'keys' | 'issuer' | 'audience'>;

const TOKEN_LENGTH_MAX = 8192;
const CLAIM_LENGTH_MAX = 1024;
/** No name of a plan is longer. The text is kept with the remembered token. */
const PLAN_LENGTH_MAX = 64;
const SHAPE = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;
/** Tolerated clock difference. Issuers usually allow as much, and a token that they accept should be counted. */
const TOLERANCE: Seconds = 60;
const ES256_BYTES = 64;
/** Each key costs the check of a signature. While an issuer replaces a key, it may give both the same `kid`. */
const SAME_ID_MAX = 4;

/**
 * @param planClaim the claim that names the client's plan; null if none does
 * @returns null if the token is malformed, is not valid now, is of another issuer or for another audience, or if no key
 *   of the set verifies its signature
 */
export function verifiedClaim(
  token: string,
  { claim, keys, issuer, audience }: TokenRules,
  now: Millis,
  planClaim: string | null = null,
): Verified | null {
  const [, head = '', body = '', signature = ''] =
    token.length > TOKEN_LENGTH_MAX ? [] : (SHAPE.exec(token) ?? []);
  const header = jsonObject(head);
  const payload = jsonObject(body);
  if (header === null || payload === null) return null;
  const value = claimText(payload[claim]);
  const time = timeOf(payload);
  const plan = planClaim === null ? null : planText(payload[planClaim]);
  if ((issuer !== null && payload.iss !== issuer) || !isMeantFor(payload, audience)) return null;
  // `crit` lists extensions that must be understood (RFC 7515 4.1.11). None is supported.
  if (value === null || time === null || header.crit !== undefined) return null;
  if (now < time.from || now >= time.until) return null;
  const signed = Buffer.from(`${head}.${body}`, 'latin1');
  const bytes = Buffer.from(signature, 'base64url');
  const isValid = keysFor(header, keys).some((key) => isSigned(key, signed, bytes));
  return isValid ? { value, plan, ...time } : null;
}

function jsonObject(part: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** Whether the token is meant for one of the audiences. `aud` is one name or a list of names (RFC 7519 4.1.3). */
function isMeantFor({ aud }: Readonly<Record<string, unknown>>, audience: readonly string[] | null): boolean {
  if (audience === null) return true;
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  return audience.some((one) => named.includes(one));
}

function claimText(value: unknown): string | null {
  if (Number.isSafeInteger(value)) return String(value);
  return typeof value === 'string' && value !== '' && value.length <= CLAIM_LENGTH_MAX ? value : null;
}

function planText(value: unknown): string | null {
  return typeof value === 'string' && value.length <= PLAN_LENGTH_MAX ? value : null;
}

function timeOf({ exp, nbf }: Readonly<Record<string, unknown>>): { from: Millis; until: Millis } | null {
  if (exp !== undefined && typeof exp !== 'number') return null;
  if (nbf !== undefined && typeof nbf !== 'number') return null;
  return {
    from: nbf === undefined ? Number.NEGATIVE_INFINITY : (nbf - TOLERANCE) * 1000,
    until: exp === undefined ? Number.POSITIVE_INFINITY : (exp + TOLERANCE) * 1000,
  };
}

/** Returns the keys that the token names. Without a `kid`, it is the only key of the algorithm. */
function keysFor({ alg, kid }: Readonly<Record<string, unknown>>, keys: KeySet): KeySet {
  const wanted = alg === 'Ed25519' ? 'EdDSA' : alg;
  const fit = keys.filter(
    ({ algorithm, id }) => algorithm === wanted && (kid === undefined || id === null || id === kid),
  );
  const named = fit.filter(({ id }) => id !== null && id === kid);
  if (named.length > 0) return named.slice(0, SAME_ID_MAX);
  return fit.length === 1 ? fit : [];
}

function isSigned({ algorithm, key }: SigningKey, signed: Buffer, signature: Buffer): boolean {
  switch (algorithm) {
    case 'RS256':
      return verify('RSA-SHA256', signed, key, signature);
    case 'ES256':
      return (
        signature.length === ES256_BYTES &&
        verify('SHA256', signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
      );
    case 'EdDSA':
      return verify(null, signed, key, signature);
    default:
      return algorithm satisfies never;
  }
}
