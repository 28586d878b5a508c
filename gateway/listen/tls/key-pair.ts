/** The certificate of the public listener, and its private key. */
import { X509Certificate } from 'node:crypto';
import { basename, dirname, relative } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Load } from '#gateway/policy/watched-file.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { readRegularFile } from '#shared/regular-file.ts';

/** Names of PEM files. */
export interface KeyPairFiles {
  /** The certificate, followed by its chain. */
  readonly cert: string;
  readonly key: string;
}

/** PEM texts. The key is a secret. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
  /** When the certificate expires, in milliseconds since the epoch. */
  readonly expiresAt: Millis;
}

/** Returns the name of the key, relative to the folder of the certificate, as FileWatch needs it. */
export function keyBeside({ cert, key }: KeyPairFiles): string {
  return relative(dirname(cert), key);
}

/** @throws Error with the reason why the two cannot be used, and what to do */
export function keyPairLoader(files: KeyPairFiles): Load<KeyPair> {
  return (cert, _file, beside) => keyPair(cert, beside(keyBeside(files)), files);
}

/** @throws Error with the reason why the two cannot be used, and what to do */
export function readKeyPair(files: KeyPairFiles): KeyPair {
  return keyPair(readText(files.cert), readText(files.key), files);
}

/** @throws Error with the reason why it cannot be read */
function readText(file: string): string {
  try {
    return readRegularFile(file);
  } catch (error) {
    throw new Error(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function keyPair(cert: string, key: string, files: KeyPairFiles): KeyPair {
  let leaf: X509Certificate;
  try {
    leaf = new X509Certificate(cert);
  } catch {
    throw new Error(`${files.cert} is not a certificate in PEM format`);
  }
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new Error(reasonOf(error as NodeJS.ErrnoException, files));
  }
  return { cert, key, expiresAt: leaf.validToDate.getTime() };
}

function reasonOf({ code, message }: NodeJS.ErrnoException, files: KeyPairFiles): string {
  if (/KEY_VALUES_MISMATCH|KEY_TYPE_MISMATCH/.test(code ?? ''))
    return `${files.key} is not the key of the first certificate in ${files.cert}; put the server's own certificate first`;
  if (/BAD_DECRYPT|BAD_PASSWORD|INTERRUPTED|MISSING_PASSPHRASE/.test(`${code} ${message}`))
    return `${files.key} is encrypted; write it without a passphrase (openssl pkey -in OLD -out NEW)`;
  return `${files.cert} and ${files.key} cannot be used: ${message}`;
}

/** @returns a warning that the certificate has expired or soon will; null without one */
export function expiryWarning({ expiresAt }: KeyPair, file: string, wallClock: Clock): string | null {
  const days = Math.floor((expiresAt - wallClock()) / DAY_MS);
  if (days < 0) return `the certificate in ${basename(file)} has expired; renew it now`;
  if (days >= DAYS_LEFT_MIN) return null;
  return `the certificate in ${basename(file)} expires in ${days} ${days === 1 ? 'day' : 'days'}; renew it`;
}

export const DAY_MS: Millis = 86_400_000;
/** Renewal programs act earlier. */
const DAYS_LEFT_MIN = 14;
