import { join } from 'node:path';
import { sql } from 'kysely';
import t from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate, SchemaTooNew } from '#api/db/migrate.ts';
import { migrations } from '#api/db/migrations/index.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

t.test('every migration runs once', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  const names = migrations.map(({ name }) => name);
  t.strictSame(await migrate(db, () => 0), names);
  t.strictSame(names, names.toSorted(), 'in the order of their numbers');
  t.strictSame(await migrate(db, () => 0), []);
});

t.test('a file keeps what was migrated, with the settings that the service relies on', async (t) => {
  const folder = temporaryFolder(t);
  const location = { kind: 'file', path: join(folder, 'new/folder/db.sqlite') } as const;
  const first = openDatabase(location);
  await migrate(first, () => 0);
  await first.destroy();
  const second = openDatabase(location);
  t.teardown(() => second.destroy());
  t.strictSame(await migrate(second, () => 0), []);
  t.match((await sql`pragma journal_mode`.execute(second)).rows, [{ journal_mode: 'wal' }]);
  t.match((await sql`pragma foreign_keys`.execute(second)).rows, [{ foreign_keys: 1 }]);
  t.match((await sql`pragma busy_timeout`.execute(second)).rows, [{ timeout: 5_000 }]);
});

t.test('a database of a newer version is refused', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  await migrate(db, () => 0);
  await sql`insert into migrations values ('999-future', '')`.execute(db);
  await t.rejects(
    migrate(db, () => 0),
    { constructor: SchemaTooNew, message: /999-future/ },
  );
});

t.test('every foreign key has an index to find the rows that go with it', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  await migrate(db, () => 0);
  const { rows } = await sql<{ table: string; column: string }>`
    select tables.name as "table", keys."from" as "column"
    from sqlite_master as tables, pragma_foreign_key_list(tables.name) as keys
    where tables.type = 'table'
      and not exists (
        select 1 from pragma_index_list(tables.name) as indexes, pragma_index_info(indexes.name) as columns
        where columns.seqno = 0 and columns.name = keys."from")`.execute(db);
  t.strictSame(rows, []);
});
