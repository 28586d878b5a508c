/** What a TLS connection to the store is checked with, and shows of itself. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

/** Names of PEM files; '' when unset. */
export interface TlsFiles {
  /** GATEWAY_REDIS_CA: authorities to trust in place of the public ones. */
  readonly ca: string;
  /** GATEWAY_REDIS_CERT: the certificate we show, with its chain. */
  readonly cert: string;
  /** GATEWAY_REDIS_KEY: its private key. */
  readonly key: string;
}

/** PEM texts. The private key is a secret. */
export interface StoreTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

const PEM = /-----BEGIN [A-Z0-9 ]+-----[\s\S]+-----END [A-Z0-9 ]+-----/;

type TlsVariable = 'GATEWAY_REDIS_CA' | 'GATEWAY_REDIS_CERT' | 'GATEWAY_REDIS_KEY';

/**
 * @param isTls whether the store's address asks for TLS
 * @param refuse is told each mistake, in one sentence without the variable's name
 * @returns null when the address asks for none
 */
export function readStoreTls(
  isTls: boolean,
  files: TlsFiles,
  refuse: (variable: TlsVariable, problem: string) => void,
): StoreTls | null {
  const named: readonly (readonly [TlsVariable, string])[] = [
    ['GATEWAY_REDIS_CA', files.ca],
    ['GATEWAY_REDIS_CERT', files.cert],
    ['GATEWAY_REDIS_KEY', files.key],
  ];
  if (!isTls) {
    for (const [variable, file] of named) {
      if (file !== '')
        refuse(variable, 'it would have no effect: GATEWAY_REDIS_URL asks for no TLS, write rediss');
    }
    return null;
  }
  if (files.cert === '' && files.key !== '')
    refuse('GATEWAY_REDIS_CERT', 'it must be set beside GATEWAY_REDIS_KEY');
  if (files.cert !== '' && files.key === '')
    refuse('GATEWAY_REDIS_KEY', 'it must be set beside GATEWAY_REDIS_CERT');
  const [ca = null, cert = null, key = null] = named.map(([variable, file]) =>
    file === '' ? null : pem(file, (problem) => refuse(variable, problem)),
  );
  const tls: StoreTls = {
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
  };
  try {
    if (cert !== null && key !== null) createSecureContext({ cert, key });
  } catch {
    refuse(
      'GATEWAY_REDIS_KEY',
      `${files.key} is not the unencrypted PEM key of the certificate in GATEWAY_REDIS_CERT`,
    );
  }
  return tls;
}

/** @returns null when the file does not hold what its name promises */
function pem(file: string, refuse: (problem: string) => void): string | null {
  try {
    const text = readFileSync(file, 'utf8');
    if (PEM.test(text)) return text;
    refuse(`${file} is not in PEM format`);
  } catch (error) {
    refuse(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  return null;
}
