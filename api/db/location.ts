/** Reads DATABASE_URL. Messages never contain an address, because it has a password. */
import { isAbsolute, resolve } from 'node:path';
import { parse, toClientConfig } from 'pg-connection-string';

/** Settings of node-postgres. */
type PostgresConfig = ReturnType<typeof toClientConfig>;

export interface PostgresLocation {
  readonly kind: 'postgres';
  readonly config: PostgresConfig;
  /** The maximum number of connections of this process. */
  readonly poolSize: number;
}

export type DatabaseLocation =
  | { readonly kind: 'memory' }
  /** `path` is absolute. */
  | { readonly kind: 'file'; readonly path: string }
  | PostgresLocation;

const POOL_SIZE = 10;
const POOL_SIZE_MAX = 500;
const EXAMPLE = 'postgres://user:password@127.0.0.1:5432/floodgate';
/** All others are refused, so that a misspelled one does not leave a connection unverified. */
const PARAMETERS = [
  'host',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'application_name',
  'options',
  'statement_timeout',
  'pool_size',
];
const TLS_MODES = ['disable', 'no-verify', 'verify-ca', 'verify-full'];

/**
 * @param cwd base of relative paths
 * @throws Error with the correct form
 */
export function parseDatabaseUrl(value: string, cwd: string): DatabaseLocation {
  if (value === 'file::memory:') return { kind: 'memory' };
  if (/^postgres(?:ql)?:\/\//.test(value)) return parsePostgresUrl(value);
  const [, path] = /^file:(?:\/\/)?([^?\0]+)$/.exec(value) ?? [];
  if (path === undefined) {
    throw new Error(
      `give file: and a path, such as file:./data/floodgate.sqlite, or file::memory:, or a PostgreSQL address such as ${EXAMPLE}`,
    );
  }
  return { kind: 'file', path: isAbsolute(path) ? path : resolve(cwd, path) };
}

function parsePostgresUrl(value: string): PostgresLocation {
  // libpq does not verify the certificate with `require`, which its name does not say. Here it is verified.
  const address = value.replace('sslmode=require', 'sslmode=verify-full');
  const config = configAt(address);
  if (!config.user || !config.database)
    throw new Error(`the address needs a user and a database, such as ${EXAMPLE}`);
  const given = new URLSearchParams(/\?(.*)$/.exec(address)?.[1]);
  for (const name of given.keys())
    if (!PARAMETERS.includes(name))
      throw new Error(`${name} is not known here; this address may have ${PARAMETERS.join(', ')}`);
  const mode = given.get('sslmode') ?? 'disable';
  if (!TLS_MODES.includes(mode))
    throw new Error(`sslmode is one of ${TLS_MODES.join(', ')}; none of them falls back to plain text`);
  if (mode === 'disable' && ['sslrootcert', 'sslcert', 'sslkey'].some((name) => given.has(name)))
    throw new Error('there are certificates, but sslmode does not ask for TLS; say sslmode=verify-full');
  const poolSize = Number(given.get('pool_size') ?? POOL_SIZE);
  if (!Number.isInteger(poolSize) || poolSize < 1 || poolSize > POOL_SIZE_MAX)
    throw new Error(`pool_size must be a whole number from 1 to ${POOL_SIZE_MAX}`);
  return { kind: 'postgres', config, poolSize };
}

/** The certificates are read too. The password is a function, so that logging a location does not log it. */
function configAt(address: string): PostgresConfig {
  try {
    const options = { useLibpqCompat: address.includes('sslmode=verify-ca') };
    const { password, ...config } = toClientConfig(parse(address, options));
    return password === '' ? config : { ...config, password: () => String(password) };
  } catch (error) {
    throw new Error(
      `the address cannot be used (${(error as Error).message}); give one such as ${EXAMPLE}, and write @ : / ? # and % in a password as %40 %3A %2F %3F %23 and %25`,
    );
  }
}

/** @param password is used if the address has none */
export function withPassword(location: DatabaseLocation, password: string): DatabaseLocation {
  if (location.kind !== 'postgres' || location.config.password !== undefined || password === '')
    return location;
  return { ...location, config: { ...location.config, password: () => password } };
}
