import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { appliedNames, migrate, SchemaTooNew, SchemaTooOld } from '#api/db/migrate.ts';
import { migrations } from '#api/db/migrations/index.ts';
import type { Database } from '#api/db/schema.ts';
import { column } from '#test/support/column.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Creates a database with the statements of a file, and a history of migrations. */
async function databaseOf(t: Test, names: readonly string[]): Promise<Database> {
  const db = openDatabase({ kind: 'file', path: join(temporaryFolder(t), 'db.sqlite') });
  t.teardown(() => db.destroy());
  await sql`create table "migrations" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null)`.execute(
    db,
  );
  for (const name of names) {
    await sql`insert into "migrations" values (${name}, '2026-01-01T00:00:00.000Z')`.execute(db);
  }
  return db;
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

t.test('refuses a database of a newer version', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  await migrate(db);
  await sql`insert into migrations values ('999-future', '')`.execute(db);
  await t.rejects(migrate(db), { constructor: SchemaTooNew, message: /999-future/ });
});

/** The schema with which version 0.1.0 ended its start, one statement a paragraph. */
const released = readFileSync(new URL('../../fixtures/database-0.1.0.sql', import.meta.url), 'utf8');
const steps = ['001-init', '030-responses-by-change', '031-no-notes'];

/** Describes tables, indexes and triggers, without the names of indexes that SQLite makes by itself. */
async function schemaOf(db: Database): Promise<readonly string[]> {
  const columns = await sql<{ text: string }>`
    select tables.name || '.' || columns.name || ' ' || columns.type || ' ' || columns."notnull" || ' ' || columns.pk
      || ' ' || coalesce(columns.dflt_value, '') as text
    from sqlite_master as tables, pragma_table_info(tables.name) as columns where tables.type = 'table'`.execute(
    db,
  );
  const keys = await sql<{ text: string }>`
    select tables.name || '.' || keys."from" || ' -> ' || keys."table" || '.' || keys."to" || ' ' || keys.on_delete as text
    from sqlite_master as tables, pragma_foreign_key_list(tables.name) as keys where tables.type = 'table'`.execute(
    db,
  );
  const indexes = await sql<{ text: string }>`
    select tables.name || ' ' || indexes."unique" || ' ' || indexes.partial || ' ' ||
      (select group_concat(columns.name, ' ' order by columns.seqno) from pragma_index_info(indexes.name) as columns) as text
    from sqlite_master as tables, pragma_index_list(tables.name) as indexes where tables.type = 'table'`.execute(
    db,
  );
  const triggers = await sql<{ text: string }>`
    select sql as text from sqlite_master where type = 'trigger'
    union all select sql from sqlite_master where type = 'index' and sql like '%where%'`.execute(db);
  return [columns, keys, indexes, triggers]
    .flatMap(({ rows }) => rows.map(({ text }) => text.replaceAll(/\s+/g, ' ')))
    .toSorted();
}

t.test('a database of version 0.1.0 has the schema of the start, keeps its rows and goes on', async (t) => {
  const old = await databaseOf(t, steps);
  for (const statement of released.split('\n\n')) await sql.raw(statement).execute(old);
  await sql`insert into "secrets" values ('kept', 'value', '')`.execute(old);
  t.strictSame(await migrate(old), column(migrations.slice(1), 'name'));
  t.strictSame(await appliedNames(old), column(migrations, 'name'));
  t.strictSame(await migrate(old), []);
  t.match(await old.selectFrom('secrets').selectAll().execute(), [{ name: 'kept' }]);
  const fresh = openDatabase({ kind: 'memory' });
  t.teardown(() => fresh.destroy());
  await migrate(fresh);
  t.strictSame(await schemaOf(old), await schemaOf(fresh));
});

t.test('refuses a database from before version 0.1.0, says what to do, and changes nothing', async (t) => {
  const old = await databaseOf(t, ['001-init', '023-keys-for-all-workspaces']);
  await t.rejects(migrate(old), {
    constructor: SchemaTooOld,
    message: /its last migration is 023-keys-for-all-workspaces\); start version 0\.1\.0 on it once/,
  });
  t.strictSame(await appliedNames(old), ['001-init', '023-keys-for-all-workspaces']);
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
