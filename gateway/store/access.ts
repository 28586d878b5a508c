/** Reads how to reach the store: its address, and the files for TLS that the address names. */
import { createSecureContext } from 'node:tls';
import { readRegularFile } from '#shared/regular-file.ts';
import { parseStoreAddress, type StoreAddress, type TlsFiles } from './address.ts';

/** How to reach the store. Contains secrets: passwords and the private key. */
export interface StoreAccess {
  readonly address: StoreAddress;
  readonly tls: StoreTls | null;
}

/**
 * Reads GATEWAY_REDIS_URL and the files that it names.
 *
 * @returns null if it is unset
 * @throws Error with the mistake, without quoting a secret
 */
export function readStoreAccess(url: string): StoreAccess | null {
  if (url === '') return null;
  const address = parseStoreAddress(url);
  return { address, tls: readStoreTls(address) };
}

/** Contents of the files in PEM format. The private key is a secret. */
export interface StoreTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

const PEM = /-----BEGIN [A-Z0-9 ]+-----[\s\S]+-----END [A-Z0-9 ]+-----/;
const NAMES = ['ca', 'cert', 'key'] as const;

/**
 * @returns null without TLS
 * @throws Error with the mistake
 */
export function readStoreTls({ tls, tlsFiles }: Pick<StoreAddress, 'tls' | 'tlsFiles'>): StoreTls | null {
  const named = NAMES.filter((name) => tlsFiles[name] !== '');
  if (!tls) {
    if (named.length === 0) return null;
    throw new Error(`${named.join(' and ')} would have no effect: for TLS the address begins with rediss`);
  }
  if ((tlsFiles.cert === '') !== (tlsFiles.key === '')) throw new Error('cert and key belong together');
  const texts: StoreTls = Object.fromEntries(named.map((name) => [name, pemText(name, tlsFiles)]));
  const { cert, key } = texts;
  try {
    if (cert !== undefined && key !== undefined) createSecureContext({ cert, key });
  } catch {
    throw new Error(`key: ${tlsFiles.key} is not the unencrypted PEM key of the certificate in cert`);
  }
  return texts;
}

function pemText(name: (typeof NAMES)[number], files: TlsFiles): string {
  const file = files[name];
  let text: string;
  try {
    text = readRegularFile(file);
  } catch (error) {
    throw new Error(`${name}: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  if (!PEM.test(text)) throw new Error(`${name}: ${file} is not in PEM format`);
  return text;
}
