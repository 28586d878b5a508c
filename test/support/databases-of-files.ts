/** Which databases the files of a run store in. */
import { globSync } from 'node:fs';
import { projectRoot } from './process.ts';
import { SYSTEM, type TestDatabase } from './system-folders.ts';
import { reaches } from './test-imports.ts';

/** Every test that asks for a database does so through this file. */
const ROOT = 'test/support/database.ts';
/** These test what differs between the databases: locks, queues, query plans, numbers and texts, writers at once. */
const DIFFERENT = globSync(
  [
    'test/api/*.test.ts',
    'test/api/{audit,auth,db,events,http,jobs,mail,parallel-writers,processes,storage}/**/*.test.ts',
    // Every operation once, with all that is described of it.
    'test/api/docs/{refusals,replies}.test.ts',
    'test/api/resources/{segments,responses}/*.test.ts',
    'test/api/resources/contacts/v2-bulk-routes.test.ts',
    'test/system/{exactness,crashes,processes}/*.test.ts',
  ],
  { cwd: projectRoot },
);
/** About SQLite's own files and locks; or test/system/postgres/crash.test.ts does the same on PostgreSQL, and more of it. */
const SQLITE_ONLY: readonly string[] = [
  'test/api/db/busy.test.ts',
  'test/api/db/faults.test.ts',
  'test/api/events/crash.test.ts',
  'test/api/http/serialization.test.ts',
  'test/system/crashes/events.test.ts',
];
/** Only about PostgreSQL, whichever the other tests use. */
const POSTGRES_ONLY = `${SYSTEM}postgres/`;

/** Of the whole suite, quick files and those of test/system together. */
export function databasesOf(file: string): readonly TestDatabase[] {
  if (file.startsWith(POSTGRES_ONLY)) return ['postgres'];
  const isTwice = DIFFERENT.includes(file) && !SQLITE_ONLY.includes(file) && reaches(file, ROOT);
  return isTwice ? ['sqlite', 'postgres'] : ['sqlite'];
}
