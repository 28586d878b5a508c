/** Decides on which databases, in which order and in which process the test files run. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readProgram } from '#test/support/imports.ts';
import { projectRoot } from '#test/support/process.ts';
import { type Program, programsIn } from './servers.ts';

const { fileGraph } = readProgram('test');

export type TestDatabase = 'sqlite' | 'postgres';

export const SYSTEM = 'test/system/';
/**
 * The folders of test/system, which `npm test` leaves out and `npm run test:all` runs, the most important first, and the
 * programs that their files start besides redis-server.
 */
export const SYSTEM_FOLDERS: Readonly<Record<string, readonly Program[]>> = {
  exactness: [],
  crashes: [],
  postgres: ['initdb'],
  cluster: [],
  processes: [],
  proxies: ['nginx', 'caddy', 'haproxy', 'promtool', 'curl', 'openssl'],
  // Each file needs programs of its own.
  neighbours: [],
  parsers: [
    'php',
    'python3',
    'ruby',
    'puma',
    '/usr/bin/python3',
    'javac',
    '/usr/share/tomcat10/bin/catalina.sh',
  ],
  pages: ['curl', 'initdb'],
  packages: ['python3', 'systemd-analyze', 'dpkg-deb'],
  images: ['buildah'],
  browsers: ['chromium', 'curl'],
  benches: [],
};

const names = Object.keys(SYSTEM_FOLDERS);

/** The programs of each test in test/system/neighbours, from the packages in the tables of its README. */
export const NEIGHBOURS: ReadonlyMap<string, readonly Program[]> = new Map(
  [
    ...readFileSync(join(projectRoot, SYSTEM, 'neighbours/README.md'), 'utf8').matchAll(
      /^\| [^|]* \| ([^|]*) \| .* \| \[.*\]\((.*\.test\.ts)\) \|$/gm,
    ),
  ].map(([, packages = '', file]) => [
    `${SYSTEM}neighbours/${file}`,
    programsIn([...packages.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)),
  ]),
);

/** Returns the position of a run in the order of importance, from 0. */
export function importanceOf(file: string, database: TestDatabase): number {
  // A file of the quick suite runs here because of its database or of the new seed.
  return names.indexOf(folderOf(file) ?? (database === 'postgres' ? 'postgres' : 'exactness'));
}

export function programsOf(file: string, database: TestDatabase): readonly Program[] {
  const folder = folderOf(file);
  const own = NEIGHBOURS.get(file) ?? SYSTEM_FOLDERS[folder ?? ''] ?? [];
  return database === 'postgres' ? ['redis-server', 'initdb', ...own] : ['redis-server', ...own];
}

/** null for a file of the quick suite */
function folderOf(file: string): string | null {
  return file.startsWith(SYSTEM) ? (file.slice(SYSTEM.length).split('/')[0] ?? null) : null;
}

/** Every test that uses a database imports this file. */
const ROOT = 'test/support/database.ts';
/**
 * These test code that differs between the databases: locks, queues, query plans, numbers and texts, concurrent
 * writers.
 */
const DIFFERENT = globSync(
  [
    'test/api/{audit,auth,cache,db,events,http,jobs,mail,parallel-writers,processes,storage,values,wiring,work}/**/*.test.ts',
    // They send every operation once, with everything that is described for it.
    'test/api/docs/{refusals,replies}.test.ts',
    'test/api/resources/{organizations,segments,responses}/*.test.ts',
    'test/api/cli/people.test.ts',
    'test/conversations/*.test.ts',
    'test/system/{exactness,crashes,processes}/*.test.ts',
  ],
  { cwd: projectRoot },
);
/**
 * These test SQLite's own files and locks, or something that test/system/postgres/crash.test.ts covers on PostgreSQL.
 */
const SQLITE_ONLY: readonly string[] = [
  'test/api/db/busy.test.ts',
  'test/api/db/faults.test.ts',
  'test/api/http/serialization.test.ts',
  'test/system/crashes/events.test.ts',
];
/** These need PostgreSQL, whichever database the other tests use. */
const POSTGRES_ONLY = `${SYSTEM}postgres/`;

/** Returns the databases for a file of the quick suite or of test/system. */
export function databasesOf(file: string): readonly TestDatabase[] {
  if (file.startsWith(POSTGRES_ONLY)) return ['postgres'];
  const isTwice = DIFFERENT.includes(file) && !SQLITE_ONLY.includes(file) && reaches(file, ROOT);
  return isTwice ? ['sqlite', 'postgres'] : ['sqlite'];
}

/** Every test that makes its input at random imports this file. Another seed finds other faults. */
const SEED = 'test/support/seed.ts';

/** Tells whether `npm run test:all` runs a file on a database. */
export function isInLongSuite(file: string, database: TestDatabase): boolean {
  const databases = databasesOf(file);
  if (!databases.includes(database)) return false;
  if (file.startsWith(SYSTEM) || database === 'postgres') return true;
  return !databases.includes('postgres') && reaches(file, SEED);
}

/** Larger groups save little time, and more files fail when a process ends early. */
const WEIGHT_MAX = 36;
/** Weight of a file that starts programs or a Redis; any other file weighs one. It takes this much longer, on average. */
const STARTING_WEIGHT = 4;
const STARTS: readonly string[] = ['test/support/process.ts', 'test/support/redis.ts'];
/** These inspect their process, and would see what other files leave in it: memory, timers, listeners. */
const ALONE = /memoryUsage|getActiveResourcesInfo|diagnostics_channel/;

/**
 * Groups files that share a process. Starting one, loading tap and loading the program under test takes a second or
 * more, which is as long as many a file runs. Later files of a process find all of it loaded and compiled.
 *
 * @param longest those that take so long that others should run beside them
 * @returns the longest, then the others, the heaviest first
 */
export function groupsOf(
  files: readonly string[],
  longest: readonly string[],
): readonly (readonly string[])[] {
  const groups: { files: string[]; weight: number }[] = [];
  const open = new Map<string, { files: string[]; weight: number }>();
  for (const file of files) {
    const area = areaOf(file);
    const weight = longest.includes(file)
      ? Number.POSITIVE_INFINITY
      : STARTS.some((helper) => reaches(file, helper))
        ? STARTING_WEIGHT
        : 1;
    const group = open.get(area);
    if (file.startsWith(SYSTEM) || weight > WEIGHT_MAX || looksAtProcess(file))
      groups.push({ files: [file], weight });
    else if (group !== undefined && group.weight + weight <= WEIGHT_MAX) {
      group.files.push(file);
      group.weight += weight;
    } else {
      const begun = { files: [file], weight };
      open.set(area, begun);
      groups.push(begun);
    }
  }
  return groups.sort((a, b) => (a.weight === b.weight ? 0 : b.weight - a.weight)).map(({ files }) => files);
}

function looksAtProcess(file: string): boolean {
  return ALONE.test(readFileSync(join(projectRoot, file), 'utf8'));
}

/** Files of one area load the same modules. */
function areaOf(file: string): string {
  const [, area = '', ...inside] = file.split('/');
  return inside.length === 0 ? '' : area;
}

/** The remaining tasks, in order. A task that needs programs that are being installed waits for them. */
export interface Task {
  readonly files: readonly string[];
  readonly database: TestDatabase;
  readonly programs: readonly Program[];
}

interface TestQueue {
  /** @returns null once all tasks are taken */
  next(): Promise<Task | null>;
}

/** @param installing resolves once `absent` are installed, or never will be */
export function testQueue(
  tasks: readonly Task[],
  absent: readonly Program[],
  installing: Promise<void>,
): TestQueue {
  const waiting = [...tasks];
  let isSettled = absent.length === 0;
  const settled = installing.then(() => {
    isSettled = true;
  });
  const isReady = ({ programs }: Task): boolean =>
    isSettled || !programs.some((program) => absent.includes(program));
  return {
    async next() {
      const at = waiting.findIndex(isReady);
      if (at >= 0) return waiting.splice(at, 1)[0] ?? null;
      if (waiting.length === 0) return null;
      await settled;
      return this.next();
    },
  };
}

/** Tells whether the file is the target, or imports it directly or by way of others. */
export function reaches(file: string, target: string, seen = new Set<string>()): boolean {
  if (file === target) return true;
  if (seen.has(file)) return false;
  seen.add(file);
  return [...(fileGraph.get(file)?.keys() ?? [])].some((next) => reaches(next, target, seen));
}
