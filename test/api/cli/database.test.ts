/** `db`, as an operator calls it. test/system/postgres/copy.test.ts has copies into a server. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import { apiCli, apiCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const SERVER = 'postgres://floodgate:secret@127.0.0.1:9/floodgate';
const folder = temporaryFolder(t);
const file = (name: string): string => `file:${join(folder, name)}`;
const db = openDatabase({ kind: 'file', path: join(folder, 'full') });
await migrate(db);
await db.insertInto('secrets').values({ name: 'a', value: 'ä', createdAt: '' }).execute();
await db.destroy();
writeFileSync(join(folder, 'empty'), '');

t.test('exits with 1, 2 or 3 for wrong arguments, and names them', async (t) => {
  for (const [args, code, message] of [
    [['copy', '--from', file('full')], 2, /--to is missing/],
    [['copy', '--from', file('full'), '--to', file('full')], 2, /to a server/],
    [['copy', '--from', SERVER, '--to', SERVER], 2, /from a SQLite file/],
    [['copy', '--from', 'mysql://x', '--to', SERVER], 2, /^--from: give file: and a path/],
    [['copy', '--from', file('none.sqlite'), '--to', SERVER], 3, /^cannot open .*none\.sqlite/],
    [['copy', '--from', file('empty'), '--to', SERVER], 1, /^the database is of another version/],
    [['copy', '--from', file('full'), '--to', SERVER], 3, /^the server does not answer.*127\.0\.0\.1:9/],
    [['backup', join(folder, 'full'), '--from', file('full')], 2, /name a new file/],
    [['backup', join(folder, 'no/b'), '--from', file('full')], 2, /in a folder that exists/],
    [['backup', join(folder, 'b'), '--from', file('none')], 3, /^cannot open .*none/],
    [['backup', join(folder, 'b'), '--from', SERVER], 2, /pg_dump --format=custom/],
    [[], 2, /Name a command: copy, backup/],
  ] as const) {
    const found = await apiCommand(['db', ...args]);
    t.equal(found.code, code, `${args.join(' ')}: ${found.stderr}`);
    t.match(found.stderr, message);
    t.notMatch(found.stderr, 'secret');
    t.equal(found.stdout, '');
  }
});

t.test('a backup is complete, and exists whole or not at all', async (t) => {
  const backup = join(folder, 'backup.sqlite');
  const { code, stdout } = await apiCommand(['db', 'backup', backup, '--json', '--from', file('full')]);
  t.equal(code, 0);
  t.match(JSON.parse(stdout), { file: backup, bytes: Number });
  const copy = new SqliteDatabase(backup, { readonly: true });
  t.strictSame(copy.prepare('select "value" from "secrets"').pluck().all(), ['ä']);
  copy.close();
  t.notOk(existsSync(`${backup}.partial`));
});

t.test('no help text has the password of DATABASE_URL', async (t) => {
  const env = { DATABASE_URL: 'postgres://floodgate:secret@db.example.com/floodgate' };
  for (const command of ['db copy', 'db backup', 'files copy', 'people', 'people add']) {
    const { code, stdout } = await apiCli([...command.split(' '), '--help'], { env });
    t.equal(code, 0);
    t.match(stdout, 'DATABASE_URL', command);
    t.notMatch(stdout, 'secret', command);
  }
});
