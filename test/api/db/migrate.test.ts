import { join } from 'node:path';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate, migrations, SchemaDiffers } from '#api/db/migrate.ts';
import type { Database } from '#api/db/schema.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

function open(t: Test, path?: string): Database {
  const db = openDatabase(path === undefined ? { kind: 'memory' } : { kind: 'file', path });
  t.teardown(() => db.destroy());
  return db;
}

const tables = async (db: Database) =>
  (await db.introspection.getTables())
    .map(({ name }) => name)
    .filter((name) => !name.startsWith('migrations'));

t.test('two processes can start on one new file at once; a later start changes nothing', async (t) => {
  const path = join(temporaryFolder(t), 'db.sqlite');
  const ran = await Promise.all([migrate(open(t, path)), migrate(open(t, path))]);
  t.strictSame(ran.flat().toSorted(), Object.keys(migrations));
  const db = open(t, path);
  t.strictSame(await migrate(db), []);
  const settings = await db.transaction().execute(async (trx) => {
    const names = ['journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout'];
    return Promise.all(names.map(async (name) => (await sql.raw(`pragma ${name}`).execute(trx)).rows[0]));
  });
  t.strictSame(
    settings.map((row) => Object.values(row ?? {})[0]),
    ['wal', 2, 1, 0],
  );
});

t.test('refuses a database of another version with one sentence, and leaves it as it is', async (t) => {
  for (const [statements, reason] of [
    [
      [
        'create table "migrations" ("name" text, "timestamp" text)',
        `insert into "migrations" values ('001-init', '2026-01-01')`,
      ],
      /001-init is missing/,
    ],
    [['create table "migrations" ("name" text, "appliedAt" text)'], /timestamp/],
    [['create table "events" ("id" text)'], /"events" already exists/],
  ] as const) {
    const db = open(t);
    for (const statement of statements) await sql.raw(statement).execute(db);
    const before = await tables(db);
    const error = await migrate(db).catch((thrown: unknown) => thrown);
    t.ok(error instanceof SchemaDiffers, String(error));
    t.match(error, {
      message:
        /^DATABASE_URL: the database is of another version of the API .*; start that version, or give a new file/,
    });
    t.match(error, { message: reason });
    t.strictSame(await tables(db), before);
  }
  const newer = open(t);
  await migrate(newer);
  await sql`insert into "migrations" values ('999-future', '2026-01-01')`.execute(newer);
  await t.rejects(migrate(newer), { constructor: SchemaDiffers, message: /999-future is missing/ });
});

t.test('every foreign key has an index', async (t) => {
  const db = open(t);
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
