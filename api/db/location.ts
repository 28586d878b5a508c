/** Where the database is, as DATABASE_URL says it. */
import { isAbsolute, resolve } from 'node:path';

export type DatabaseLocation =
  | { readonly kind: 'memory' }
  /** `path` is absolute. */
  | { readonly kind: 'file'; readonly path: string };

/**
 * @param cwd what a relative path is relative to
 * @throws Error that says what would be right
 */
export function parseDatabaseUrl(value: string, cwd: string): DatabaseLocation {
  if (value === 'file::memory:') return { kind: 'memory' };
  const path = value.startsWith('file://') ? value.slice('file://'.length) : value.slice('file:'.length);
  if (!value.startsWith('file:') || path === '' || path.includes('?') || path.includes('\0')) {
    throw new Error('give file: and a path, such as file:./data/floodgate.sqlite, or file::memory:');
  }
  return { kind: 'file', path: isAbsolute(path) ? path : resolve(cwd, path) };
}

/** For people and for comparison: without user and password. */
export function describeLocation(location: DatabaseLocation): string {
  switch (location.kind) {
    case 'memory':
      return 'file::memory:';
    case 'file':
      return `file:${location.path}`;
  }
}
