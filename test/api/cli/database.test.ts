/** `db`, as an operator calls it. test/system/postgres/copy.test.ts has copies into a server. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { apiCommand } from '#test/support/cli.ts';
import { emptyFile, execute, oddSource, rowsOf, tablesOf } from '#test/support/copies.ts';

const SERVER = 'postgres://floodgate:secret@127.0.0.1:9/floodgate';

t.test('exits with 1, 2 or 3 for wrong arguments, and names them', async (t) => {
  const { folder, path, from } = await oddSource(t, () => 1);
  const file = (name: string): string => `file:${join(folder, name)}`;
  execute(join(folder, 'empty'), 'create table "t" ("a")');
  for (const [name, statement] of [
    ['old', `update "migrations" set "name" = '001-init'`],
    ['new', `insert into "migrations" values ('999-next', '')`],
  ] as const) {
    await emptyFile(join(folder, name));
    execute(join(folder, name), statement);
  }
  for (const [args, code, message] of [
    [['copy', '--from', from], 2, /--to is missing/],
    [['copy', '--from', from, '--to', from], 2, /^--to: give an empty PostgreSQL database/],
    [['copy', '--from', SERVER, '--to', SERVER], 2, /^--from: give the SQLite file to copy/],
    [['copy', '--from', 'mysql://x', '--to', SERVER], 2, /^--from: give file: and a path/],
    [['copy', '--from', 'file::memory:', '--to', SERVER], 2, /^--from: give the SQLite file/],
    [['copy', '--from', file('none.sqlite'), '--to', SERVER], 3, /^cannot open .*none\.sqlite/],
    [['copy', '--from', file('empty'), '--to', SERVER], 1, /the source is not a database of the API/],
    [['copy', '--from', file('old'), '--to', SERVER], 1, /^the source is of a time before the first release/],
    [['copy', '--from', file('new'), '--to', SERVER], 1, /a newer version \(it has 999-next\)/],
    [['copy', '--from', from, '--to', SERVER], 3, /^the server at 127\.0\.0\.1:9 does not answer/],
    [['backup', path, '--from', from], 2, /already exists; name a new file/],
    [['backup', join(folder, 'no/b'), '--from', from], 2, /no does not exist; create the folder first/],
    [['backup', join(folder, 'b'), '--from', file('none')], 3, /^cannot open .*none/],
    [['backup', join(folder, 'b'), '--from', SERVER], 2, /pg_dump --format=custom/],
    [[], 2, /Name a command: copy, backup/],
    [['nothing'], 2, /Name a command: copy, backup/],
  ] as const) {
    const found = await apiCommand(['db', ...args]);
    t.equal(found.code, code, `${args.join(' ')}: ${found.stderr}`);
    t.match(found.stderr, message);
    t.notMatch(found.stderr, 'secret');
    t.equal(found.stdout, '');
  }
});

t.test('no key counts by itself, because db copy does not copy its counter', async (t) => {
  const { path } = await oddSource(t, () => 1);
  const counted = new SqliteDatabase(path, { readonly: true })
    .prepare(`select "name" from sqlite_master where "type" = 'table' and "sql" like '%autoincrement%'`)
    .pluck()
    .all();
  t.strictSame(counted, []);
});

t.test('a backup is complete, and exists whole or not at all', async (t) => {
  const { folder, path, from } = await oddSource(t);
  const file = join(folder, 'backup.sqlite');
  const { code, stdout } = await apiCommand(['db', 'backup', file, '--json', '--from', from]);
  t.equal(code, 0);
  t.match(JSON.parse(stdout), { file, bytes: Number });
  for (const table of tablesOf(path)) t.strictSame(rowsOf(file, table), rowsOf(path, table), table);
  t.notOk(existsSync(`${file}.partial`));
});
