/** `db`, as an operator calls it. test/system/postgres/copy.test.ts has copies into a server. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import { apiCli, apiCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const file = (name: string): string => `file:${join(folder, name)}`;
const db = openDatabase({ kind: 'file', path: join(folder, 'full') });
await migrate(db);
await db.insertInto('secrets').values({ name: 'a', value: 'ä', createdAt: '' }).execute();
await db.destroy();

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
