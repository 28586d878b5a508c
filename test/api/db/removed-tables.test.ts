/** Tables of removed features are dropped, and rows are never lost. */
import { sql } from 'kysely';
import t from 'tap';
import { hasTable } from '#api/db/dialect.ts';
import { dropTables } from '#api/db/removed-tables.ts';
import { isOnPostgres, openPrivateDatabase } from '#test/support/database.ts';

t.test('a table without rows goes; one with rows leaves a line for the log', async (t) => {
  const db = await openPrivateDatabase(t);
  await sql`create table "oldEmpty" ("id" text primary key)`.execute(db);
  await sql`create table "oldFull" ("id" text primary key)`.execute(db);
  await sql`insert into "oldFull" values ('a'), ('b')`.execute(db);
  const drop = (...tables: readonly string[]) =>
    db.transaction().execute((trx) => dropTables(trx, '099-gone', tables));
  t.match(
    await drop('oldEmpty', 'oldFull'),
    isOnPostgres ? /: oldFull \(2 rows\); they are renamed/ : /: oldFull \(2 rows\); a database in memory/,
  );
  t.notOk(await hasTable(db, 'oldEmpty'));
  t.notOk(await hasTable(db, 'oldFull'));
  t.equal(await hasTable(db, 'removed_oldFull'), isOnPostgres);
  t.equal(await drop(), null);
});
