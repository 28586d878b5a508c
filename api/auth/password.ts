/** Passwords and e-mail addresses: which ones are accepted, and how passwords are hashed (argon2id). */
import { argon2, timingSafeEqual } from 'node:crypto';
import { invalidFields } from '#api/errors.ts';
import type { Random } from '#api/values/ids.ts';
import { type ConcurrencyLimit, limitConcurrency } from '#api/work/concurrency.ts';

const PASSWORD_LENGTH_MIN = 8;
const PASSWORD_LENGTH_MAX = 128;
const EMAIL_LENGTH_MAX = 255;

/** The first of OWASP's recommendations for argon2id: 19 MiB, two passes. One hash takes a thread about 40 ms. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/**
 * Half of Node's threads, so that file access and DNS lookups continue. A hundred waiting hashes take about two
 * seconds.
 */
const CONCURRENCY: ConcurrencyLimit = { runningMax: 2, waitingMax: 100, retryAfterSeconds: 2 };

interface Cost {
  /** Memory in KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** Computes one argon2id hash. Tests replace it to count the hashes. */
type Derive = (password: string, salt: Uint8Array, cost: Cost) => Promise<Buffer>;

export interface Passwords {
  /**
   * @returns the text to store
   * @throws ApiError too_many_requests if too many passwords are being hashed
   */
  hash(password: string): Promise<string>;
  /**
   * Compares in constant time. For null, which stands for an unknown user or one without a password, it does the same
   * work and returns false.
   *
   * @throws ApiError too_many_requests, like `hash`
   */
  verify(password: string, stored: string | null): Promise<boolean>;
}

/** @returns the reason to refuse a new password, which completes a sentence; null if it is acceptable */
export function passwordProblem(password: string): string | null {
  const { length } = password;
  const hasLength = length >= PASSWORD_LENGTH_MIN && length <= PASSWORD_LENGTH_MAX;
  if (hasLength && /\p{Lu}/u.test(password) && /\d/.test(password)) return null;
  return `must have ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters, with an upper-case letter and a digit`;
}

/** @returns the password as it was given @throws ApiError invalid_fields for the field `password` */
export function passwordIn(password: string): string {
  const problem = passwordProblem(password);
  if (problem !== null) throw invalidFields({ password: problem });
  return password;
}

/** Whether a password is longer than any real one. Hashing it would waste work. */
export function isTooLong(password: string): boolean {
  return password.length > PASSWORD_LENGTH_MAX;
}

/** @returns the address in lower case, as it is stored; null if it is malformed or ambiguous */
export function normalizeEmail(text: string): string | null {
  if (text.length > 2 * EMAIL_LENGTH_MAX) return null;
  const email = text.trim().toLowerCase();
  const isAddress = /^[^\s@<>()[\]\\,;:"\p{C}]+@[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+$/u.test(email);
  return email.length <= EMAIL_LENGTH_MAX && isAddress ? email : null;
}

/** @returns the address as `normalizeEmail` does @throws ApiError invalid_fields for the field `email` */
export function emailIn(text: string): string {
  const email = normalizeEmail(text);
  if (email !== null) return email;
  throw invalidFields({ email: `must be an e-mail address of at most ${EMAIL_LENGTH_MAX} characters` });
}

export function createPasswords(random: Random, derive: Derive = deriveArgon2id): Passwords {
  const limitedDerive = limitConcurrency(derive, CONCURRENCY);
  /** No password has this hash. It is compared where no account is known, so that both replies take as long. */
  const unknown = { cost: COST, salt: Buffer.alloc(SALT_BYTES), hash: Buffer.from(random(HASH_BYTES)) };
  return {
    async hash(password) {
      const salt = random(SALT_BYTES);
      return format(COST, salt, await limitedDerive(password, salt, COST));
    },
    async verify(password, stored) {
      const known = parse(stored ?? '');
      const { cost, salt, hash } = known ?? unknown;
      const actual = await limitedDerive(password, salt, cost);
      const isSame = actual.length === hash.length && timingSafeEqual(actual, hash);
      return isSame && known !== null;
    },
  };
}

/** @returns `$argon2id$v=19$m=…,t=…,p=…$salt$hash`, as other programs write it */
function format({ memory, passes, parallelism }: Cost, salt: Uint8Array, hash: Uint8Array): string {
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64').replaceAll('=', '');
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${text(salt)}$${text(hash)}`;
}

function parse(stored: string): { readonly cost: Cost; readonly salt: Buffer; readonly hash: Buffer } | null {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w+/]{22})\$([\w+/]{43})$/.exec(stored);
  if (match === null) return null;
  const [, memory, passes, parallelism, salt = '', hash = ''] = match;
  return {
    cost: { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) },
    salt: Buffer.from(salt, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  };
}

export const deriveArgon2id: Derive = (password, salt, cost) =>
  new Promise((resolve, reject) => {
    const parameters = { message: password, nonce: salt, tagLength: HASH_BYTES, ...cost };
    argon2('argon2id', parameters, (error, hash) => {
      if (error === null) resolve(hash);
      else reject(error);
    });
  });
