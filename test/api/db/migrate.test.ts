import { join } from 'node:path';
import { sql } from 'kysely';
import t from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate, SchemaDiffers } from '#api/db/migrate.ts';
import { migrations } from '#api/db/migrations/index.ts';
import { column } from '#test/support/column.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

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
  await t.rejects(migrate(db), {
    constructor: SchemaDiffers,
    message: /newer version \(it has 999-future\)/,
  });
});

t.test('refuses a database of a time before the first release, and leaves it as it is', async (t) => {
  for (const column of ['timestamp', 'appliedAt']) {
    const db = openDatabase({ kind: 'memory' });
    t.teardown(() => db.destroy());
    await sql`create table "migrations" ("name" text primary key, ${sql.ref(column)} text not null)`.execute(
      db,
    );
    for (const name of ['001-init', '034-deletions'])
      await sql`insert into migrations values (${name}, '2026-01-01T00:00:00.000Z')`.execute(db);
    await t.rejects(migrate(db), {
      constructor: SchemaDiffers,
      message:
        'DATABASE_URL: the database is of a time before the first release, and cannot be migrated; start with a new file or an empty database',
    });
    const { rows } = await sql<{ name: string }>`select name from sqlite_master where type = 'table'`.execute(
      db,
    );
    t.strictSame(rows, [{ name: 'migrations' }]);
  }
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
  // A later table already exists.
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
