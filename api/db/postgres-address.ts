/**
 * Parses addresses such as `postgres://user:password@host:port/database?sslmode=verify-full`. Unknown parameters are
 * refused, so that a misspelled one does not leave a connection unverified. Messages never contain the address, because
 * it has a password.
 */
import { type AddressSettings, addressSettings, refuseUnknown } from './address-settings.ts';

export type PostgresTls =
  | { readonly kind: 'off' }
  | {
      /**
       * `full`: the certificate must be for this host. `authority`: any host, if the authority signed it. `nobody`: not
       * checked.
       */
      readonly checks: 'full' | 'authority' | 'nobody';
      readonly kind: 'on';
      /** Paths of PEM files; null for the system's authorities, and no client certificate. */
      readonly rootCertificate: string | null;
      readonly certificate: string | null;
      readonly key: string | null;
    };

export interface PostgresLocation {
  readonly kind: 'postgres';
  /** The host: a name, an address, or the folder of a Unix socket, which begins with a slash. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** A function, so that logging a location does not log the password. Returns '' if there is none. */
  readonly password: () => string;
  /** Schema of the tables; null for the server's default, usually `public`. */
  readonly schema: string | null;
  /** Name of the session in the server's views. */
  readonly applicationName: string;
  readonly tls: PostgresTls;
  readonly settings: AddressSettings;
}

const EXAMPLE = 'postgres://user:password@127.0.0.1:5432/floodgate';
const NAME_LENGTH_MAX = 63;
const parameters = [
  'host',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'schema',
  'application_name',
  'synchronous',
  'pool_size',
  'statement_timeout_ms',
  'wait_seconds',
];

export function parsePostgresUrl(value: string): PostgresLocation {
  // An address without a host names the socket's folder in the parameter `host`.
  const url = URL.parse(value.replace(/^(\w+:\/\/[^/?#]*@)(?=[/?])/, '$1localhost'));
  if (url === null || url.hash !== '') {
    throw new Error(
      `not a PostgreSQL address; give one such as ${EXAMPLE}, and write @ : / ? # and % in a password as %40 %3A %2F %3F %23 and %25`,
    );
  }
  refuseUnknown(url.searchParams, parameters);
  const database = decoded(url.pathname.slice(1));
  const user = decoded(url.username);
  if (user === '' || database === '') {
    throw new Error(`the address needs a user and a database, such as ${EXAMPLE}`);
  }
  const host = url.searchParams.get('host') ?? decoded(url.hostname).replace(/^\[(.*)\]$/, '$1');
  if (host.includes(',')) throw new Error('give one server; several in one address are not supported');
  const password = decoded(url.password);
  return {
    kind: 'postgres',
    host: host === '' ? 'localhost' : host,
    port: url.port === '' ? 5432 : Number(url.port),
    database,
    user,
    password: () => password,
    schema: schemaIn(url.searchParams.get('schema')),
    applicationName: url.searchParams.get('application_name') ?? 'floodgate',
    tls: tlsIn(url.searchParams),
    settings: addressSettings(url.searchParams),
  };
}

function decoded(text: string): string {
  let value: string;
  try {
    value = decodeURIComponent(text);
  } catch {
    throw new Error('a % in the address is not followed by two digits; write it as %25');
  }
  if (value.includes('\0')) throw new Error('the address has a NUL character');
  return value;
}

function schemaIn(value: string | null): string | null {
  if (value === null) return null;
  if (!/^[A-Za-z_][\w$]*$/.test(value) || value.length > NAME_LENGTH_MAX) {
    throw new Error('schema is not a name of letters, digits and underscores');
  }
  return value;
}

function tlsIn(given: URLSearchParams): PostgresTls {
  const mode = given.get('sslmode') ?? 'disable';
  const files = {
    rootCertificate: given.get('sslrootcert'),
    certificate: given.get('sslcert'),
    key: given.get('sslkey'),
  };
  switch (mode) {
    case 'disable':
      if (Object.values(files).some((file) => file !== null)) {
        throw new Error('there are certificates, but sslmode does not ask for TLS; say sslmode=verify-full');
      }
      return { kind: 'off' };
    // libpq does not verify the certificate with `require`, which its name does not say. Here it is verified.
    case 'require':
    case 'verify-full':
      return { kind: 'on', checks: 'full', ...files };
    case 'verify-ca':
      return { kind: 'on', checks: 'authority', ...files };
    case 'no-verify':
      return { kind: 'on', checks: 'nobody', ...files };
    default:
      throw new Error(
        'sslmode is disable, verify-full, verify-ca or no-verify; none of them falls back to plain text',
      );
  }
}
