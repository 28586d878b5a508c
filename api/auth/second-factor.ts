/**
 * The second factor of an account: the secret of an authenticator app, and backup codes. This file writes the tables
 * `twoFactors` and `backupCodes`. `users.twoFactorEnabled` tells whether a login needs it, which begins with the first
 * correct code.
 *
 * The database has the secret encrypted, and a keyed hash of each backup code. Both keys come from the signing secret.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { countRows } from '#api/db/count.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import type { Random } from '#api/ids.ts';
import type { Millis } from '#shared/clock.ts';
import type { Signer } from './signer.ts';
import { stepOf } from './totp.ts';

/** Length of the secret, equal to that of the hash, as RFC 4226 recommends. */
const SECRET_BYTES = 20;
const CODES = 10;
/** Ten letters out of 32 are as hard to guess as 50 random bits. Letters that look alike are left out. */
const CODE_LENGTH = 10;
const CODE_ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';
const CODE_LENGTH_MAX = 64;
const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

export interface SecondFactor {
  readonly kind: 'totp' | 'backupCode';
  readonly code: string;
}

interface Parts {
  readonly signer: Signer;
  readonly random: Random;
}

/** `none`: the account has no secret, or no unused backup code. */
type Use = 'right' | 'wrong' | 'none';

/** Stores a new secret, which logins do not need before the first correct code. @returns the secret */
export async function enroll(
  trx: Database,
  { signer, random }: Parts,
  userId: string,
  now: Timestamp,
): Promise<Uint8Array> {
  const secret = random(SECRET_BYTES);
  const sealedSecret = seal(secret, { signer, random }, userId);
  await trx
    .insertInto('twoFactors')
    .values({ userId, sealedSecret, lastStep: 0, createdAt: now })
    .onConflict((conflict) =>
      conflict.column('userId').doUpdateSet({ sealedSecret, lastStep: 0, createdAt: now }),
    )
    .execute();
  return secret;
}

/** Replaces all backup codes. @returns the new ones */
export async function renewBackupCodes(
  trx: Database,
  { signer, random }: Parts,
  userId: string,
): Promise<readonly string[]> {
  const codes = Array.from({ length: CODES }, () => newCode(random));
  await trx.deleteFrom('backupCodes').where('userId', '=', userId).execute();
  await trx
    .insertInto('backupCodes')
    .values(codes.map((code) => ({ userId, digest: digestOf(code, signer, userId) })))
    .execute();
  return codes;
}

/** @returns how many codes were not used yet */
export function backupCodesLeft(db: Database, userId: string): Promise<number> {
  return countRows(db.selectFrom('backupCodes').where('userId', '=', userId));
}

/** @returns null when the account has none */
export async function totpSecret(db: Database, signer: Signer, userId: string): Promise<Uint8Array | null> {
  const row = await db.selectFrom('twoFactors').selectAll().where('userId', '=', userId).executeTakeFirst();
  return row === undefined ? null : unseal(row.sealedSecret, signer, userId);
}

/**
 * Uses a code up: of two requests with one code, only one gets `right`. Call it in a transaction that has locked the
 * user.
 */
export async function useSecondFactor(
  trx: Database,
  signer: Signer,
  userId: string,
  { kind, code }: SecondFactor,
  now: Millis,
): Promise<Use> {
  if (kind === 'backupCode') return useBackupCode(trx, signer, userId, code);
  const secret = await totpSecret(trx, signer, userId);
  if (secret === null) return 'none';
  // Apps show a code in two groups.
  const step = stepOf(secret, code.replaceAll(/\s/g, ''), now);
  if (step === null) return 'wrong';
  const { numUpdatedRows } = await trx
    .updateTable('twoFactors')
    .set({ lastStep: step })
    .where('userId', '=', userId)
    .where('lastStep', '<', step)
    .executeTakeFirst();
  return numUpdatedRows > 0n ? 'right' : 'wrong';
}

async function useBackupCode(trx: Database, signer: Signer, userId: string, code: string): Promise<Use> {
  const codes = trx.selectFrom('backupCodes').select('digest').where('userId', '=', userId).limit(1);
  if ((await codes.executeTakeFirst()) === undefined) return 'none';
  if (code.length > CODE_LENGTH_MAX) return 'wrong';
  const { numDeletedRows } = await trx
    .deleteFrom('backupCodes')
    .where('userId', '=', userId)
    .where('digest', '=', digestOf(code, signer, userId))
    .executeTakeFirst();
  return numDeletedRows > 0n ? 'right' : 'wrong';
}

export async function removeSecondFactor(trx: Database, userId: string): Promise<void> {
  await trx.deleteFrom('twoFactors').where('userId', '=', userId).execute();
  await trx.deleteFrom('backupCodes').where('userId', '=', userId).execute();
}

/** Returns a code in two groups, so that people can copy it. */
function newCode(random: Random): string {
  const text = [...random(CODE_LENGTH)]
    .map((byte) => CODE_ALPHABET.charAt(byte % CODE_ALPHABET.length))
    .join('');
  return `${text.slice(0, CODE_LENGTH / 2)}-${text.slice(CODE_LENGTH / 2)}`;
}

function digestOf(code: string, signer: Signer, userId: string): string {
  const plain = code.toLowerCase().replaceAll(/[\s-]/g, '');
  return signer.sign(`floodgate.backup-code.v1:${userId}:${plain}`);
}

function seal(secret: Uint8Array, { signer, random }: Parts, userId: string): string {
  const iv = random(IV_BYTES);
  const cipher = createCipheriv(CIPHER, keyOf(signer), iv).setAAD(Buffer.from(userId));
  const sealed = [cipher.update(secret), cipher.final()];
  return Buffer.concat([iv, cipher.getAuthTag(), ...sealed]).toString('base64url');
}

function unseal(text: string, signer: Signer, userId: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64url');
  const tag = bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES);
  const decipher = createDecipheriv(CIPHER, keyOf(signer), bytes.subarray(0, IV_BYTES))
    .setAAD(Buffer.from(userId))
    .setAuthTag(tag);
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
}

function keyOf(signer: Signer): Buffer {
  return Buffer.from(signer.sign('floodgate.two-factor.v1'), 'hex');
}
