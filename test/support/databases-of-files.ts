/** Which test files store something, and so are run once on each database. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from './process.ts';

export type TestDatabase = 'sqlite' | 'postgres';

/** Every test that asks for a database does so through this file. */
const ROOT = 'test/support/database.ts';
/** Only about SQLite's own files and locks. */
const SQLITE_ONLY: ReadonlySet<string> = new Set(['test/api/db/busy.test.ts', 'test/api/db/faults.test.ts']);
/** Only about PostgreSQL, whichever the other tests use. */
const POSTGRES_ONLY = /^test\/api\/db\/postgres-[^/]+\.test\.ts$/;
const IMPORT = /^(?:import|export)\s[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm;

/** @param wanted the databases of this run @returns those of them that the file runs on; a file that stores nothing runs once */
export function databasesOf(file: string, wanted: readonly TestDatabase[]): readonly TestDatabase[] {
  const [first] = wanted;
  if (first === undefined) return [];
  if (POSTGRES_ONLY.test(file)) return [first];
  if (SQLITE_ONLY.has(file)) return wanted.filter((database) => database === 'sqlite');
  return reachesDatabase(file) ? wanted : [first];
}

const known = new Map<string, boolean>();

function reachesDatabase(file: string): boolean {
  if (file === ROOT) return true;
  const found = known.get(file);
  if (found !== undefined) return found;
  // Until we know better; also ends a walk in a circle.
  known.set(file, false);
  const answer = importsOf(file).some(reachesDatabase);
  known.set(file, answer);
  return answer;
}

/** Those below test/. */
function importsOf(file: string): readonly string[] {
  const path = join(projectRoot, file);
  if (!existsSync(path)) return [];
  return [...readFileSync(path, 'utf8').matchAll(IMPORT)].flatMap(([, from, bare]) => {
    const specifier = from ?? bare ?? '';
    if (specifier.startsWith('#test/')) return [specifier.slice(1)];
    if (!specifier.startsWith('.')) return [];
    const target = join(dirname(file), specifier);
    return target.startsWith('test/') ? [target] : [];
  });
}
