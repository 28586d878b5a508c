/** A write that waits for another process does not block the event loop. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { DatabaseBusy } from '#api/db/faults.ts';
import { migrate } from '#api/db/migrate.ts';
import type { Database } from '#api/db/schema.ts';
import { createSqliteDialect } from '#api/db/sqlite-driver.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

async function setUp(t: Test, busyTimeoutMs?: number) {
  const path = join(temporaryFolder(t), 'db.sqlite');
  const db = openDatabase({ kind: 'file', path }, busyTimeoutMs === undefined ? {} : { busyTimeoutMs });
  t.teardown(() => db.destroy());
  await migrate(db);
  const other = new SqliteDatabase(path);
  t.teardown(() => other.close());
  return { db, other };
}

const insertSecret = (db: Database, name: string) =>
  db.insertInto('secrets').values({ name, value: '', createdAt: '' }).execute();
const names = async (db: Database) =>
  (await db.selectFrom('secrets').select('name').orderBy('name').execute()).map(({ name }) => name);

t.test('writes and transactions wait for another writer, reads and timers do not', async (t) => {
  const { db, other } = await setUp(t);
  await insertSecret(db, 'before');
  other.exec('begin immediate');
  const write = insertSecret(db, 'statement');
  const transaction = db.transaction().execute((trx) => insertSecret(trx, 'transaction'));
  for (let i = 0; i < 5; i += 1) {
    await sleep(1);
    t.strictSame(await names(db), ['before'], 'a read does not wait for the writer');
  }
  other.exec('commit');
  await Promise.all([write, transaction]);
  t.strictSame(await names(db), ['before', 'statement', 'transaction']);
});

t.test('if a writer does not end, all waiting callers get DatabaseBusy at once', async (t) => {
  const { db, other } = await setUp(t, 50);
  other.exec('begin immediate');
  const results = await Promise.allSettled([
    insertSecret(db, 'a'),
    db.transaction().execute((trx) => insertSecret(trx, 'b')),
    insertSecret(db, 'c'),
  ]);
  for (const result of results) {
    t.ok(result.status === 'rejected' && result.reason instanceof DatabaseBusy, result.status);
  }
  other.exec('commit');
  await insertSecret(db, 'd');
  t.strictSame(await names(db), ['d'], 'the next writer gets its turn');
});

t.test('a read outside a transaction does not see uncommitted changes', async (t) => {
  const { db } = await setUp(t);
  const gate = Promise.withResolvers<void>();
  const inserted = Promise.withResolvers<void>();
  const transaction = db.transaction().execute(async (trx) => {
    await insertSecret(trx, 'new');
    t.strictSame(await names(trx), ['new'], 'a read inside the transaction sees the change');
    inserted.resolve();
    await gate.promise;
  });
  await inserted.promise;
  t.strictSame(await names(db), []);
  gate.resolve();
  await transaction;
  t.strictSame(await names(db), ['new']);
});

for (const kind of ['memory', 'file'] as const) {
  t.test(`rolls a failed transaction back and runs the next one (${kind})`, async (t) => {
    const db = openDatabase(
      kind === 'memory' ? { kind } : { kind, path: join(temporaryFolder(t), 'db.sqlite') },
    );
    t.teardown(() => db.destroy());
    await migrate(db);
    const failed = db.transaction().execute(async (trx) => {
      await insertSecret(trx, 'a');
      throw new Error('no');
    });
    const later = db.transaction().execute((trx) => insertSecret(trx, 'b'));
    await t.rejects(failed, /no/);
    await later;
    t.strictSame(await names(db), ['b']);
  });
}

t.test('refuses waiting callers when the database is closed', async (t) => {
  const path = join(temporaryFolder(t), 'db.sqlite');
  const db = openDatabase({ kind: 'file', path });
  await migrate(db);
  const gate = Promise.withResolvers<void>();
  const open = db.transaction().execute(() => gate.promise);
  const waiting = insertSecret(db, 'late');
  const refused = t.rejects(waiting, DatabaseBusy);
  await sleep(1);
  await db.destroy();
  await refused;
  gate.resolve();
  await open.catch(() => undefined);
});

t.test('reuses a connection, but never for two callers at once', async (t) => {
  const memory = new SqliteDatabase(':memory:');
  const driver = createSqliteDialect({ writer: memory, reader: memory }).createDriver();
  t.teardown(() => driver.destroy());
  const seen = new Set<unknown>();
  for (let i = 0; i < 1000; i += 1) {
    const pair = await Promise.all([driver.acquireConnection(), driver.acquireConnection()]);
    if (pair[0] === pair[1]) t.fail('two callers got one connection');
    for (const connection of pair) {
      seen.add(connection);
      await driver.releaseConnection(connection);
    }
  }
  t.equal(seen.size, 2);

  const open = await driver.acquireConnection();
  await driver.beginTransaction(open, {});
  await driver.releaseConnection(open);
  const again = await driver.acquireConnection();
  t.equal(again, open);
  t.equal(memory.inTransaction, false, 'a transaction that was left open is rolled back');
});
