/**
 * Measures the lowest possible cost of creating a response. `node floor.ts OPTIONS` serves a plain Fastify route that
 * inserts the same row with the API's driver and settings, and checks nothing. The command-line program of the database
 * inserts the row without Node and HTTP.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import SqliteDatabase from 'better-sqlite3';
import Fastify from 'fastify';
import pg from 'pg';
import { workspaceId } from '#bench/api/service.ts';
import type { Processes, Started } from '#bench/run/processes.ts';
import { find } from '#bench/run/programs.ts';
import { serveWith } from '#bench/run/workers.ts';
import { postgresFolder } from '#test/support/postgres-process.ts';
import { ANSWER } from './operations.ts';

interface FloorOptions {
  readonly port: number;
  readonly workers: number;
  /** Address of the database, in the form of `DATABASE_URL`. */
  readonly databaseUrl: string;
}

const run = promisify(execFile);
/** The default of the API. */
const POOL_SIZE = 10;
/** Number of inserts with the program sqlite3, because it cannot run for a given time. */
const SQLITE_INSERTS = 2_000;
const PGBENCH_CLIENTS = 20;

const columns = {
  ...{ id: '', createdAt: '', updatedAt: '', workspaceId, surveyId: '', finished: 1 },
  ...{ data: JSON.stringify(ANSWER), variables: '{}', ttc: '{"_total":0}', meta: '{"userAgent":{}}' },
};
const names = Object.keys(columns).map((name) => `"${name}"`);

function insertOf(values: readonly string[]): string {
  return `insert into "responses" (${names.join(', ')}) values (${values.join(', ')})`;
}

function rowOf(given: Partial<typeof columns>): readonly (string | number)[] {
  const now = new Date().toISOString();
  return Object.values({ ...columns, createdAt: now, updatedAt: now, ...given });
}

function openInsert(url: string): (values: readonly (string | number)[]) => unknown {
  if (url.startsWith('file:')) {
    const db = new SqliteDatabase(url.slice('file:'.length));
    for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON']) db.pragma(pragma);
    const statement = db.prepare(insertOf(names.map(() => '?')));
    return (values) => statement.run(...values);
  }
  const pool = new pg.Pool({ connectionString: url, max: POOL_SIZE });
  const statement = insertOf(names.map((_, i) => `$${i + 1}`));
  return (values) => pool.query(statement, [...values]);
}

async function serve({ databaseUrl, port }: FloorOptions): Promise<void> {
  const insert = openInsert(databaseUrl);
  const app = Fastify();
  app.post<{ Body: { surveyId: string; finished: boolean; data: object } }>('/', async ({ body }) => {
    const id = `c${randomBytes(12).toString('hex')}`;
    const { data, finished, surveyId } = body;
    await insert(rowOf({ id, surveyId, finished: finished ? 1 : 0, data: JSON.stringify(data) }));
    return { data: { id } };
  });
  await app.listen({ host: '127.0.0.1', port });
}

export function startFloor(processes: Processes, options: FloorOptions): Promise<Started> {
  return processes.node('the floor', [import.meta.filename, JSON.stringify(options)], { readyText: 'ready' });
}

/** @returns number of inserts a second, each in its own durable transaction; null if the program is not installed */
export async function insertNatively(
  url: string,
  surveyId: string,
  seconds: number,
  processes: Processes,
): Promise<number | null> {
  /** @param id SQL that returns a new id each time */
  const insert = (id: string): string => {
    const [, ...values] = rowOf({ surveyId });
    return `${insertOf([id, ...values.map((value) => (typeof value === 'number' ? `${value}` : `'${value}'`))])};`;
  };
  if (url.startsWith('file:')) {
    if (find('sqlite3') === null) return null;
    const lines = Array<string>(SQLITE_INSERTS).fill(insert(`'c' || lower(hex(randomblob(12)))`));
    const settings = ['.timeout 5000', 'pragma synchronous = full;', 'pragma foreign_keys = on;'];
    const began = performance.now();
    const running = run('sqlite3', [url.slice('file:'.length)]);
    running.child.stdin?.end([...settings, ...lines].join('\n'));
    await running;
    return SQLITE_INSERTS / ((performance.now() - began) / 1000);
  }
  const program = join(postgresFolder() ?? '/', 'pgbench');
  if (!existsSync(program)) return null;
  const id = `'c' || substr(md5(random()::text || clock_timestamp()), 1, 24)`;
  const script = processes.file('insert.sql', insert(id));
  const args = ['-n', '-M', 'prepared', '-c', String(PGBENCH_CLIENTS), '-j', '1', '-T', String(seconds)];
  const { stdout } = await run(program, [...args, '-f', script, url]);
  return Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1] ?? Number.NaN);
}

if (import.meta.main) {
  const options: FloorOptions = JSON.parse(process.argv[2] ?? '');
  await serveWith(options.workers, () => serve(options));
}
