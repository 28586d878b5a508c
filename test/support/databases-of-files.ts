/** Which test files store something, and so are run once on each database. */
import { reaches } from './test-imports.ts';

export type TestDatabase = 'sqlite' | 'postgres';

/** Every test that asks for a database does so through this file. */
const ROOT = 'test/support/database.ts';
/** About SQLite's own files and locks; or test/system/postgres/crash.test.ts does the same on PostgreSQL, and more of it. */
const SQLITE_ONLY: ReadonlySet<string> = new Set([
  'test/api/db/busy.test.ts',
  'test/api/db/faults.test.ts',
  'test/api/events/crash.test.ts',
]);
/** About the description, schemas and pictures, which no database has a part in, although an API that runs has one. */
const ONCE: ReadonlySet<string> = new Set([
  'test/api/docs/openapi.test.ts',
  'test/api/http/serialization.test.ts',
  'test/api/resources/og/routes.test.ts',
  'test/system/browsers/docs-page.test.ts',
]);
/** Only about PostgreSQL, whichever the other tests use. */
const POSTGRES_ONLY = /^test\/system\/postgres\//;

/** @param wanted the databases of this run @returns those of them that the file runs on; a file that stores nothing runs once */
export function databasesOf(file: string, wanted: readonly TestDatabase[]): readonly TestDatabase[] {
  const [first] = wanted;
  if (first === undefined) return [];
  if (POSTGRES_ONLY.test(file) || ONCE.has(file)) return [first];
  if (SQLITE_ONLY.has(file)) return wanted.filter((database) => database === 'sqlite');
  return reaches(file, ROOT) ? wanted : [first];
}
