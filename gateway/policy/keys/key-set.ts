/** Reads a JSON Web Key Set (RFC 7517): the public keys that verify tokens. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import type { KeySet, SigningAlgorithm, SigningKey } from '#gateway/identity/identifier.ts';
import { Mistake } from '#gateway/policy/problems.ts';

type JsonWebKey = Extract<Parameters<typeof createPublicKey>[0], { format: 'jwk' }>['key'] & {
  readonly kid?: unknown;
};

export const KEY_SET_BYTES_MAX = 262_144;
const KEYS_MAX = 100;
const RSA_BITS_MIN = 2048;
const WHAT_TO_WRITE =
  'write a JSON Web Key Set: { "keys": [ … ] } with public keys for RS256, ES256 or EdDSA';

/**
 * Skips keys of other types and for other uses, because key sets often contain them.
 *
 * @throws Mistake that describes the error in the text
 */
export function parseKeySet(text: string, file: string): KeySet {
  const keys = keysOf(text, file);
  if (keys.length > KEYS_MAX)
    throw new Mistake(`${file} has ${keys.length} keys`, `write at most ${KEYS_MAX}`);
  const usable = keys.flatMap((key, i) => signingKey(key, `key ${i + 1} of ${file}`) ?? []);
  if (usable.length === 0) throw new Mistake(`${file} has no key that can be used`, WHAT_TO_WRITE);
  return usable;
}

function keysOf(text: string, file: string): readonly JsonWebKey[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Mistake(`${file} is not JSON: ${(error as Error).message}`, WHAT_TO_WRITE);
  }
  const keys: unknown = (value as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || !keys.every((key) => typeof key === 'object' && key !== null))
    throw new Mistake(`${file} is not a key set`, WHAT_TO_WRITE);
  return keys;
}

/** @returns null if the key is of another type or for another use */
function signingKey(jwk: JsonWebKey, where: string): SigningKey | null {
  if (jwk.d !== undefined)
    throw new Mistake(`${where} is a private key`, 'write its public part only, and replace the pair');
  const algorithm = algorithmOf(jwk);
  // Ed25519 is the newer name of EdDSA with this curve (RFC 9864).
  const named = jwk.alg === 'Ed25519' ? 'EdDSA' : jwk.alg;
  if (algorithm === null || (named !== undefined && named !== algorithm)) return null;
  if (jwk.use !== undefined && jwk.use !== 'sig') return null;
  if (Array.isArray(jwk.key_ops) && !jwk.key_ops.includes('verify')) return null;
  let key: KeyObject;
  try {
    key = createPublicKey({ key: jwk, format: 'jwk' });
  } catch {
    throw new Mistake(`${where} is damaged`, WHAT_TO_WRITE);
  }
  const { modulusLength } = key.asymmetricKeyDetails ?? {};
  if (modulusLength !== undefined && modulusLength < RSA_BITS_MIN)
    throw new Mistake(`${where} has ${modulusLength} bits`, `use at least ${RSA_BITS_MIN}`);
  return { id: typeof jwk.kid === 'string' ? jwk.kid : null, algorithm, key };
}

function algorithmOf({ kty, crv }: JsonWebKey): SigningAlgorithm | null {
  if (kty === 'RSA') return 'RS256';
  if (kty === 'EC' && crv === 'P-256') return 'ES256';
  if (kty === 'OKP' && crv === 'Ed25519') return 'EdDSA';
  return null;
}
