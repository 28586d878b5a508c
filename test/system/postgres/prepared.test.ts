/** Frequent statements are prepared, within bounds, and statements prepared before a migration do no harm after it. */
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { parseDatabaseUrl } from '#api/db/location.ts';
import type { PostgresLocation } from '#api/db/postgres-address.ts';
import { PostgresKysely } from '#api/db/postgres-driver.ts';
import type { Database } from '#api/db/schema.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';

const OFTEN = 20;

async function open(t: Test, poolSize = 1): Promise<Database> {
  const { drop, url } = await createPostgresDatabase();
  const db = new PostgresKysely(parseDatabaseUrl(url, '/') as PostgresLocation, { poolSize });
  t.teardown(async () => {
    await db.destroy();
    await drop();
  });
  return db;
}

const secret = (db: Database, name: string) =>
  db.selectFrom('secrets').selectAll().where('name', '=', name).execute();
const insert = (db: Database, name: string) =>
  db.insertInto('secrets').values({ name, value: 'v', createdAt: '' }).execute();

async function preparedOn(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ statement: string }>`select statement from pg_prepared_statements`.execute(db);
  return rows.map(({ statement }) => statement);
}

t.test('the server keeps only frequent statements prepared', async (t) => {
  const db = await open(t);
  await insert(db, 'one');
  for (let i = 0; i < OFTEN; i++) await secret(db, i % 2 === 0 ? 'one' : 'two');
  const prepared = await preparedOn(db);
  t.equal(prepared.length, 1);
  t.match(prepared[0], /^select \* from "secrets"/);
  t.strictSame(await secret(db, 'one'), [{ name: 'one', value: 'v', createdAt: '' }]);
  t.strictSame(await secret(db, 'two'), [], 'the statement uses its new values');
});

t.test('lists of any length do not fill the memory of the server', async (t) => {
  const db = await open(t);
  for (let length = 1; length <= 150; length++) {
    const names = Array.from({ length }, (_, i) => `n${i}`);
    for (let i = 0; i < OFTEN; i++)
      await db.selectFrom('secrets').select('name').where('name', 'in', names).execute();
  }
  t.equal((await preparedOn(db)).length, 100);
});

const askOften = (db: Database): Promise<unknown> =>
  Promise.all(Array.from({ length: 4 * OFTEN }, () => secret(db, 'one')));

t.test('a prepared statement works after another version has changed the table', async (t) => {
  const db = await open(t, 4);
  await insert(db, 'one');
  await askOften(db);
  await sql`alter table "secrets" add column "more" text`.execute(db);
  t.strictSame(await secret(db, 'one'), [{ name: 'one', value: 'v', createdAt: '', more: null }]);
  await askOften(db);
});

t.test('inside a transaction, it works at the second attempt', async (t) => {
  // A single connection, so that the statement was prepared on it.
  const db = await open(t);
  await insert(db, 'one');
  await askOften(db);
  await sql`alter table "secrets" add column "more" text`.execute(db);
  let attempts = 0;
  const rows = await db.transaction().execute((trx) => {
    attempts += 1;
    return secret(trx, 'one');
  });
  t.equal(rows.length, 1);
  t.equal(attempts, 2, 'the transaction is repeated once');
  await askOften(db);
});
