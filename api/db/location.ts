import { isAbsolute, resolve } from 'node:path';
import { type AddressSettings, addressSettings, refuseUnknown } from './address-settings.ts';
import { type PostgresLocation, parsePostgresUrl } from './postgres-address.ts';

export type DatabaseLocation =
  | { readonly kind: 'memory' }
  /** `path` is absolute. */
  | ({ readonly kind: 'file'; readonly path: string } & FileSettings)
  | PostgresLocation;

type FileSettings = Pick<AddressSettings, 'synchronous'>;

/**
 * @param cwd base of relative paths
 * @throws Error with the correct form
 */
export function parseDatabaseUrl(value: string, cwd: string): DatabaseLocation {
  if (value === 'file::memory:') return { kind: 'memory' };
  if (/^postgres(?:ql)?:\/\//.test(value)) return parsePostgresUrl(value);
  const [, path = '', query = ''] = /^file:(?:\/\/)?([^?\0]*)(?:\?(.*))?$/s.exec(value) ?? [];
  if (path === '') {
    throw new Error(
      'give file: and a path, such as file:./data/floodgate.sqlite, or file::memory:, or a PostgreSQL address such as postgres://user:password@127.0.0.1:5432/floodgate',
    );
  }
  const given = new URLSearchParams(query);
  refuseUnknown(given, ['synchronous']);
  return {
    kind: 'file',
    path: isAbsolute(path) ? path : resolve(cwd, path),
    ...addressSettings(given),
  };
}

export function withPassword(location: DatabaseLocation, password: string): DatabaseLocation {
  if (location.kind !== 'postgres' || location.password() !== '') return location;
  return { ...location, password: () => password };
}
