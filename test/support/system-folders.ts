/**
 * The folders of test/system, which `npm test` leaves out and `npm run test:all` runs, the most important first, and the
 * programs that their files start besides redis-server.
 */
import type { Program } from './servers.ts';

export type TestDatabase = 'sqlite' | 'postgres';

export const SYSTEM = 'test/system/';
export const SYSTEM_FOLDERS: Readonly<Record<string, readonly Program[]>> = {
  exactness: [],
  crashes: [],
  postgres: ['initdb'],
  cluster: [],
  processes: [],
  proxies: ['nginx', 'caddy', 'haproxy', 'promtool', 'curl', 'openssl'],
  pages: ['curl', 'initdb'],
  packages: [],
  images: [],
  browsers: ['chromium', 'curl'],
  benches: [],
};

const names = Object.keys(SYSTEM_FOLDERS);

/** Where a run on a database stands in the order of importance, from 0. */
export function importanceOf(file: string, database: TestDatabase): number {
  // A file of the quick suite is run here because of its database.
  return names.indexOf(folderOf(file) ?? (database === 'postgres' ? 'postgres' : 'exactness'));
}

export function programsOf(file: string, database: TestDatabase): readonly Program[] {
  const folder = folderOf(file);
  const own = folder === null ? [] : (SYSTEM_FOLDERS[folder] ?? []);
  return database === 'postgres' ? ['redis-server', 'initdb', ...own] : ['redis-server', ...own];
}

/** null: a file of the quick suite */
function folderOf(file: string): string | null {
  return file.startsWith(SYSTEM) ? (file.slice(SYSTEM.length).split('/')[0] ?? null) : null;
}
