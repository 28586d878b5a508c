/**
 * The rules for setting up a second factor, for the routes of programs and for the page of people. Each function
 * throws a NamedError when it refuses: INVALID_PASSWORD, INVALID_CODE and so on, see errors.ts.
 *
 * The caller counts the attempt first, see `takeGuess`.
 */
import type { FastifyRequest } from 'fastify';
import { isTooLong } from '#api/auth/password.ts';
import {
  enroll,
  removeSecondFactor,
  renewBackupCodes,
  type SecondFactor,
  totpSecret,
  useSecondFactor,
} from '#api/auth/second-factor.ts';
import { endSessionsOf, startSession } from '#api/auth/session.ts';
import { totpUri } from '#api/auth/totp.ts';
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { noteAccountEvent } from '#api/resources/accounts/account-event.ts';
import { deleteTokens, findUser, isAsProven, type User, updateUser } from '#api/resources/accounts/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { problem } from './errors.ts';

/** The account of a session, and the password that its caller gave. */
interface Proof {
  readonly userId: string;
  readonly password: string;
}

interface Enrolled {
  readonly user: User;
  readonly secret: Uint8Array;
}

/** Makes a new secret and new backup codes. Logins need them after the first right code, see `confirmCode`. */
export function beginSetUp(
  context: Context,
  proof: Proof,
): Promise<Enrolled & { readonly backupCodes: readonly string[] }> {
  return withPassword(context, proof, async (trx, user) => {
    if (user.twoFactorEnabled === 1) throw problem('TWO_FACTOR_ALREADY_ENABLED');
    const secret = await enroll(trx, context, user.id, toTimestamp(context.clock()));
    return { user, secret, backupCodes: await renewBackupCodes(trx, context, user.id) };
  });
}

export function readSecret(context: Context, proof: Proof): Promise<Enrolled> {
  return withPassword(context, proof, async (trx, user) => {
    const secret = await totpSecret(trx, context.signer, user.id);
    if (secret === null) throw problem('TOTP_NOT_ENABLED');
    return { user, secret };
  });
}

/** @returns new backup codes; the old ones end */
export async function renewCodes(
  context: Context,
  request: FastifyRequest,
  proof: Proof,
): Promise<readonly string[]> {
  const backupCodes = await withPassword(context, proof, async (trx, user) => {
    if (user.twoFactorEnabled !== 1) throw problem('TWO_FACTOR_NOT_ENABLED');
    return renewBackupCodes(trx, context, user.id);
  });
  await noteChange(context, request, proof.userId, 'backupCodes');
  return backupCodes;
}

export async function turnOff(context: Context, request: FastifyRequest, proof: Proof): Promise<void> {
  await withPassword(context, proof, async (trx, { id }) => {
    await updateUser(trx, id, { twoFactorEnabled: 0 }, toTimestamp(context.clock()));
    await deleteTokens(trx, id, ['twoFactor']);
    await removeSecondFactor(trx, id);
  });
  await noteChange(context, request, proof.userId, 'twoFactorEnabled');
}

/**
 * Checks a code of somebody who is logged in. The first right code of an authenticator app turns the second factor on:
 * then all sessions end that began without it.
 *
 * @param user as the session has found it
 * @returns the token of a new session; null when the second factor was on already
 */
export async function confirmCode(
  context: Context,
  request: FastifyRequest,
  user: User,
  factor: SecondFactor,
): Promise<string | null> {
  const { db, clock, signer, config } = context;
  const { id: userId } = user;
  const isFirst = user.twoFactorEnabled !== 1;
  if (isFirst && factor.kind === 'backupCode') throw problem('TWO_FACTOR_NOT_ENABLED');
  const renewed = await db.transaction().execute(async (trx) => {
    if (!(await isAsProven(trx, user))) throw problem('UNAUTHORIZED');
    const use = await useSecondFactor(trx, signer, userId, factor, clock());
    if (use === 'none' && factor.kind === 'totp') throw problem('TOTP_NOT_ENABLED');
    if (use !== 'right') throw wrongCode(factor);
    if (!isFirst) return null;
    await updateUser(trx, userId, { twoFactorEnabled: 1 }, toTimestamp(clock()));
    await endSessionsOf(trx, userId);
    return startSession(trx, userId, { ...context, maxAgeSeconds: config.sessionMaxAgeSeconds });
  });
  if (renewed !== null) await noteChange(context, request, userId, 'twoFactorEnabled');
  return renewed;
}

export function wrongCode({ kind }: SecondFactor): Error {
  return problem(kind === 'totp' ? 'INVALID_CODE' : 'INVALID_BACKUP_CODE');
}

/** @param issuer the name in the authenticator app; '' for that of our host */
export function uriOf(
  { config }: Pick<Context, 'config'>,
  { secret, user }: Pick<Enrolled, 'secret'> & { readonly user: Pick<User, 'email'> },
  issuer = '',
): string {
  return totpUri(secret, {
    issuer: issuer.trim() || new URL(config.publicUrl).host,
    account: user.email,
  });
}

/** @throws NamedError INVALID_PASSWORD; ApiError too_many_requests when very many passwords are being hashed */
async function withPassword<T>(
  { db, passwords }: Context,
  { userId, password }: Proof,
  work: (trx: Database, user: User) => Promise<T>,
): Promise<T> {
  const user = await findUser(db, userId);
  if (user === null) throw problem('UNAUTHORIZED');
  if (isTooLong(password) || !(await passwords.verify(password, user.passwordHash))) {
    throw problem('INVALID_PASSWORD');
  }
  return db.transaction().execute(async (trx) => {
    // The password, or the second factor, may have changed during the check.
    if (!(await isAsProven(trx, user))) throw problem('INVALID_PASSWORD');
    return work(trx, user);
  });
}

function noteChange(context: Context, request: FastifyRequest, userId: string, field: string): Promise<void> {
  return noteAccountEvent(context, request, { action: 'updated', userId, changes: { fields: [field] } });
}
