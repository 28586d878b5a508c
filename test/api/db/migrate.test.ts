import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import t from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { hasTable } from '#api/db/dialect.ts';
import { migrate, SchemaTooNew } from '#api/db/migrate.ts';
import { migrations } from '#api/db/migrations/index.ts';
import { column } from '#test/support/column.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Creates the database of an older version. @param next the first migration that it lacks */
async function olderThan(path: string, next: string, rows: readonly string[]): Promise<void> {
  const old = openDatabase({ kind: 'file', path });
  await sql`create table "migrations" ("name" text primary key, "timestamp" text not null)`.execute(old);
  for (const { name, statements, only } of migrations.filter(({ name }) => name < next)) {
    for (const statement of [...statements, ...(only?.sqlite ?? [])]) await sql.raw(statement).execute(old);
    await sql`insert into migrations values (${name}, '2026-01-01T00:00:00.000Z')`.execute(old);
  }
  for (const row of rows) await sql.raw(row).execute(old);
  await old.destroy();
}

t.test('runs every migration once', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  const names = migrations.map(({ name }) => name);
  t.strictSame(await migrate(db), names);
  t.strictSame(names, names.toSorted(), 'migrations are listed in the order of their numbers');
  t.strictSame(await migrate(db), []);
});

t.test('a file keeps its migrations, and has the settings that the service needs', async (t) => {
  const folder = temporaryFolder(t);
  const location = { kind: 'file', path: join(folder, 'new/folder/db.sqlite') } as const;
  const first = openDatabase(location);
  await migrate(first);
  await first.destroy();
  const second = openDatabase(location);
  t.teardown(() => second.destroy());
  t.strictSame(await migrate(second), []);
  t.match((await sql`pragma journal_mode`.execute(second)).rows, [{ journal_mode: 'wal' }]);
  // Reads the setting of the writing connection, inside a transaction. The default is full (2), normal is 1.
  const synchronous = async (db: typeof second) =>
    (await db.transaction().execute((trx) => sql`pragma synchronous`.execute(trx))).rows;
  t.match(await synchronous(second), [{ synchronous: 2 }]);
  const normal = openDatabase({ ...location, synchronous: 'normal' });
  t.teardown(() => normal.destroy());
  t.match(await synchronous(normal), [{ synchronous: 1 }]);
  t.match((await sql`pragma foreign_keys`.execute(second)).rows, [{ foreign_keys: 1 }]);
  t.match((await sql`pragma busy_timeout`.execute(second)).rows, [{ timeout: 0 }]);
});

t.test('028: the tables of the second factor go; their rows stay in a copy of the file', async (t) => {
  const location = { kind: 'file', path: join(temporaryFolder(t), 'db.sqlite') } as const;
  await olderThan(location.path, '028-no-second-factor', [
    `insert into "users" values ('u', '', '', 'Zoe', 'zoe@example.com', '', null, 1, 1, 'email', '{}', 'en-US', null)`,
    `insert into "twoFactors" values ('u', 'sealed', 0, '')`,
    `insert into "backupCodes" values ('u', 'one'), ('u', 'two')`,
  ]);
  const db = openDatabase(location);
  t.teardown(() => db.destroy());
  const told: string[] = [];
  await migrate(db, (sentence) => told.push(sentence));
  const file = `${location.path}.before-028-no-second-factor`;
  t.strictSame(told, [
    `removed tables of features that are gone: backupCodes (2 rows), twoFactors (1 row); ${file} is a copy of the database from before`,
  ]);
  t.match(await db.selectFrom('users').selectAll().executeTakeFirst(), { name: 'Zoe', isActive: 1 });
  t.notOk(await hasTable(db, 'twoFactors'));
  t.notOk(await hasTable(db, 'backupCodes'));
  const copy = openDatabase({ kind: 'file', path: file });
  t.teardown(() => copy.destroy());
  t.match((await sql`select "digest" from "backupCodes" order by 1`.execute(copy)).rows, [
    { digest: 'one' },
    { digest: 'two' },
  ]);
});

t.test('028: empty tables go without a word and without a copy', async (t) => {
  const folder = temporaryFolder(t);
  const db = openDatabase({ kind: 'file', path: join(folder, 'db.sqlite') });
  t.teardown(() => db.destroy());
  const told: string[] = [];
  await migrate(db, (sentence) => told.push(sentence));
  t.strictSame(told, []);
  t.strictSame(
    readdirSync(folder).filter((name) => name.includes('before')),
    [],
  );
});

t.test('refuses a database of a newer version', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  await migrate(db);
  await sql`insert into migrations values ('999-future', '')`.execute(db);
  await t.rejects(migrate(db), { constructor: SchemaTooNew, message: /999-future/ });
});

t.test('migrates a database that is older than the migrator', async (t) => {
  const location = { kind: 'file', path: join(temporaryFolder(t), 'db.sqlite') } as const;
  const old = openDatabase(location);
  const [first, ...rest] = migrations;
  if (first === undefined) throw new Error('no migrations');
  await sql`create table "migrations" ("name" text primary key, "appliedAt" text not null)`.execute(old);
  for (const statement of first.statements) await sql.raw(statement).execute(old);
  await sql`insert into migrations values (${first.name}, '2025-01-01T00:00:00.000Z')`.execute(old);
  await old.destroy();
  const db = openDatabase(location);
  t.teardown(() => db.destroy());
  t.strictSame(await migrate(db), column(rest, 'name'));
  t.strictSame(await migrate(db), []);
});

t.test('two processes can start on one new database at once', async (t) => {
  const location = { kind: 'file', path: join(temporaryFolder(t), 'db.sqlite') } as const;
  const [one, other] = [openDatabase(location), openDatabase(location)];
  t.teardown(() => Promise.all([one.destroy(), other.destroy()]));
  const ran = await Promise.all([migrate(one), migrate(other)]);
  t.strictSame(ran.flat().toSorted(), column(migrations, 'name'));
});

t.test('a failed migration changes nothing', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  // A table of a later migration already exists.
  await sql`create table "events" ("id" text)`.execute(db);
  await t.rejects(migrate(db), /events/);
  const { rows } = await sql`select name from sqlite_master where name = 'organizations'`.execute(db);
  t.strictSame(rows, []);
  await sql`drop table "events"`.execute(db);
  t.equal((await migrate(db)).length, migrations.length);
});

t.test('every foreign key has an index', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  await migrate(db);
  const { rows } = await sql<{ table: string; column: string }>`
    select tables.name as "table", keys."from" as "column"
    from sqlite_master as tables, pragma_foreign_key_list(tables.name) as keys
    where tables.type = 'table'
      and not exists (
        select 1 from pragma_index_list(tables.name) as indexes, pragma_index_info(indexes.name) as columns
        where columns.seqno = 0 and columns.name = keys."from")`.execute(db);
  t.strictSame(rows, []);
});

t.test('keys that do not manage all workspaces lose write on their organization', async (t) => {
  const location = { kind: 'file', path: join(temporaryFolder(t), 'db.sqlite') } as const;
  const key = (id: string, write: number, all: string): string =>
    `insert into "apiKeys" ("id", "label", "hashedKey", "organizationId", "createdAt", "organizationRead", "organizationWrite", "allWorkspaces")
    values ('${id}', '${id}', '${id}', 'org', '', 1, ${write}, ${all})`;
  await olderThan(location.path, '026', [
    `insert into "organizations" ("id", "name", "createdAt", "updatedAt") values ('org', 'Org', '', '')`,
    key('listed', 1, 'null'),
    key('reader', 1, `'read'`),
    key('manager', 1, `'manage'`),
    key('modest', 0, `'read'`),
  ]);
  const db = openDatabase(location);
  t.teardown(() => db.destroy());
  const told: string[] = [];
  await migrate(db, (sentence) => told.push(sentence));
  t.match(told, [/write on their organization.*: 2$/], 'one line counts them');
  const writers = await db.selectFrom('apiKeys').select('id').where('organizationWrite', '=', 1).execute();
  t.strictSame(writers, [{ id: 'manager' }]);
  await migrate(db, (sentence) => told.push(sentence));
  t.equal(told.length, 1, 'and only once');
});
