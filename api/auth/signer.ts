/**
 * Signs single-use ids, PIN sessions, verified addresses and other tokens.
 *
 * A signature is HMAC-SHA-256 with one secret. The first start creates the secret and stores it in the database, so
 * that links stay valid after a restart. Each purpose has a prefix of its own in the signed text, so no token works for
 * another purpose.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Database } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock } from '#shared/clock.ts';

const SECRET_NAME = 'link-signing';
const SECRET_BYTES = 32;

export interface Signer {
  /** @returns the signature in hexadecimal */
  sign(text: string): string;
  /** Verifies a signature, in constant time for signatures of the right length. */
  verify(text: string, signature: string): boolean;
}

export function createSigner(secret: Uint8Array): Signer {
  const digest = (text: string): Buffer => createHmac('sha256', secret).update(text).digest();
  return {
    sign: (text) => digest(text).toString('hex'),
    verify(text, signature) {
      const expected = digest(text);
      const given = Buffer.from(signature, 'hex');
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
  };
}

/** Reads the secret, or creates it if there is none. Two processes that start at once get the same one. */
export async function loadSigningSecret(db: Database, random: Random, clock: Clock): Promise<Uint8Array> {
  await db
    .insertInto('secrets')
    .values({
      name: SECRET_NAME,
      value: Buffer.from(random(SECRET_BYTES)).toString('base64url'),
      createdAt: toTimestamp(clock()),
    })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  const { value } = await db
    .selectFrom('secrets')
    .select('value')
    .where('name', '=', SECRET_NAME)
    .executeTakeFirstOrThrow();
  return Buffer.from(value, 'base64url');
}
