/** A write that waits for another process does not block the event loop. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { DatabaseBusy } from '#api/db/faults.ts';
import { migrate } from '#api/db/migrate.ts';
import type { Database } from '#api/db/schema.ts';
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

t.test('writes and transactions wait for another writer, timers do not', async (t) => {
  const { db, other } = await setUp(t);
  other.exec('begin immediate');
  const write = insertSecret(db, 'statement');
  const transaction = db.transaction().execute((trx) => insertSecret(trx, 'transaction'));
  for (let i = 0; i < 5; i += 1) await sleep(1);
  other.exec('commit');
  await Promise.all([write, transaction]);
  t.strictSame(await names(db), ['statement', 'transaction']);
});

t.test('if a writer does not end, waiting callers get DatabaseBusy', async (t) => {
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
