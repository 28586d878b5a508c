/** One insert after the other by the database's own program, so without Node and without HTTP: pgbench, or sqlite3. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { postgresFolder } from '#test/support/postgres-process.ts';
import { find } from '../tools.ts';
import type { BenchDatabase } from './databases.ts';
import { literalInsert } from './row.ts';

/** Of sqlite3, which takes no duration. */
const INSERTS = 2_000;

export interface NativeOptions {
  readonly database: BenchDatabase;
  readonly surveyId: string;
  readonly workspaceId: string;
  /** Connections of pgbench; SQLite takes one writer at a time. */
  readonly clients: number;
  readonly seconds: number;
  readonly folder: string;
}

/** @returns inserts a second, each a transaction that is on the disk; null: the program is not there */
export async function insertNatively(options: NativeOptions): Promise<number | null> {
  return options.database.kind === 'sqlite' ? bySqlite(options) : byPgbench(options);
}

async function bySqlite({ database, surveyId, workspaceId }: NativeOptions): Promise<number | null> {
  const program = find('sqlite3');
  if (program === null) return null;
  const insert = literalInsert(`'c' || lower(hex(randomblob(12)))`, surveyId, workspaceId);
  const script = [
    '.timeout 5000',
    'pragma synchronous = full;',
    'pragma foreign_keys = on;',
    ...Array<string>(INSERTS).fill(`${insert};`),
  ];
  const began = performance.now();
  await run(program, [database.url.slice('file:'.length)], script.join('\n'));
  return INSERTS / ((performance.now() - began) / 1000);
}

async function byPgbench(options: NativeOptions): Promise<number | null> {
  const { clients, database, folder, seconds, surveyId, workspaceId } = options;
  const programs = postgresFolder();
  const program = programs === null ? null : join(programs, 'pgbench');
  if (program === null) return null;
  const script = join(folder, 'insert.sql');
  const id = `'c' || substr(md5(random()::text || clock_timestamp()), 1, 24)`;
  writeFileSync(script, `${literalInsert(id, surveyId, workspaceId)};\n`);
  const load = [
    '-n',
    '-M',
    'prepared',
    '-c',
    String(clients),
    '-j',
    '1',
    '-T',
    String(seconds),
    '-f',
    script,
  ];
  const said = await run(program, [...load, database.url], '');
  const found = /^tps = ([\d.]+)/m.exec(said)?.[1];
  if (found === undefined) throw new Error(`pgbench said: ${said.slice(-500)}`);
  return Number(found);
}

async function run(program: string, args: readonly string[], input: string): Promise<string> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(input);
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${errors.slice(-500)}`);
  return out;
}
