/** Creates databases to copy, and compares them without our own code. */
import { join } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import type { Test } from 'tap';
import { copyRows } from '#api/db/copy/copy.ts';
import { openSnapshot, openTarget } from '#api/db/copy/ends.ts';
import { CopyInterfered } from '#api/db/copy/note.ts';
import { readShape } from '#api/db/copy/shape.ts';
import { compare } from '#api/db/copy/verify.ts';
import type { DatabaseLocation } from '#api/db/location.ts';
import { fillOddly } from '#test/support/odd-rows.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

export const shape = await readShape();
export const names = shape.tables.map(({ name }) => name);

export interface Source {
  readonly folder: string;
  readonly path: string;
  readonly from: string;
  readonly rows: number;
}

/** Creates a database with odd rows in every table. */
export async function oddSource(t: Test, rowsOf: (table: string) => number = () => 30): Promise<Source> {
  const folder = temporaryFolder(t);
  const path = join(folder, 'source.sqlite');
  await (await openTarget({ kind: 'file', path })).close();
  return { folder, path, from: `file:${path}`, rows: fillOddly(path, names, rowsOf) };
}

/** Finds the rows that only one of two files has. SQLite compares them. */
export function differences(one: string, other: string): readonly string[] {
  const sqlite = new SqliteDatabase(one, { readonly: true });
  sqlite.prepare('attach ? as other').run(other);
  const count = (query: string): unknown => sqlite.prepare(`select count(*) from ${query}`).pluck().get();
  const found = names.filter((name) => {
    if (count(`"${name}"`) === 0) throw new Error(`${name} has no rows to compare`);
    const [rows, others] = ['main', 'other'].map((file) => `select ${columns(name)} from ${file}."${name}"`);
    return count(`(${rows} except ${others})`) !== 0 || count(`(${others} except ${rows})`) !== 0;
  });
  sqlite.close();
  return found;
}

/** Includes the types, because `except` treats 1 and 1.0 as equal. */
function columns(table: string): string {
  const list = shape.tables.find(({ name }) => name === table)?.columns ?? [];
  return list.map((column) => `"${column}", typeof("${column}")`).join(', ');
}

export function execute(path: string, statement: string): void {
  const sqlite = new SqliteDatabase(path);
  sqlite.pragma('foreign_keys = OFF');
  sqlite.exec(statement);
  sqlite.close();
}

/** Runs two copies at once. One of them ends, and all rows exist once. */
export async function twoAtOnce(t: Test, location: DatabaseLocation): Promise<void> {
  const { path, rows } = await oddSource(t, () => 300);
  const [target, another] = [await openTarget(location), await openTarget(location)];
  const from = await openSnapshot({ kind: 'file', path }, { shape, isExclusive: false, what: 'the source' });
  const options = { shape, from: from.db, source: path, isRestart: false, refusesNul: false };
  const ended = await Promise.allSettled(
    [target, another].map(({ db, isIndexedLast }) => copyRows({ ...options, to: db, isIndexedLast })),
  );
  const [won, ...more] = ended.filter((one) => one.status === 'fulfilled');
  t.strictSame(more, [], 'only one of the two copies fails');
  t.equal(won?.value.rows, rows);
  for (const one of ended) {
    if (one.status === 'rejected') t.ok(one.reason instanceof CopyInterfered, String(one.reason));
  }
  const compared = await compare(shape, from.db, target.db);
  t.strictSame(
    compared.filter(({ isSame }) => !isSame),
    [],
  );
  for (const end of [from, target, another]) await end.close();
}
