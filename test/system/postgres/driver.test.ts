/** Every wait is bounded, conflicting transactions are repeated, and failures have our own messages. */
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { DatabaseBusy, DatabaseFault, type OnTrouble } from '#api/db/faults.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import type { Database } from '#api/db/schema.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';

const shared = await createPostgresDatabase();
t.teardown(() => shared.drop());

function open(t: Test, query = '', onTrouble?: OnTrouble): Database {
  const db = openDatabase(parseDatabaseUrl(shared.url + query, '/'), onTrouble);
  t.teardown(() => db.destroy());
  return db;
}

const insertSecret = (db: Database, name: string) =>
  db.insertInto('secrets').values({ name, value: '', createdAt: '' }).execute();
const setValue = (db: Database, name: string, value: string) =>
  db.updateTable('secrets').set({ value }).where('name', '=', name).execute();
const raise = (code: string) => sql.raw(`do $$ begin raise exception 'no' using errcode = '${code}'; end $$`);
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

function isBusy(t: Test, error: unknown, isAway: boolean): void {
  t.ok(error instanceof DatabaseBusy && error.isAway === isAway, String(error));
}

/** Runs a transaction that holds what `begin` took until the end of `work`. */
async function during(
  db: Database,
  begin: (trx: Database) => Promise<unknown>,
  work: () => Promise<void>,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await begin(trx);
    await work();
  });
}

t.test('a statement over its time is refused as busy, and the connection serves again', async (t) => {
  const db = open(t, '?pool_size=1&statement_timeout=1000');
  isBusy(t, await failure(sql`select pg_sleep(60)`.execute(db)), false);
  await insertSecret(db, 'after');
});

t.test('a write that waits too long for a lock, or for a connection, is refused as busy', async (t) => {
  const db = open(t, '?pool_size=1');
  await insertSecret(db, 'locked');
  await during(
    open(t),
    (trx) => setValue(trx, 'locked', 'other'),
    async () => isBusy(t, await failure(setValue(db, 'locked', 'ours')), false),
  );
  await during(
    db,
    (trx) => setValue(trx, 'locked', 'ours'),
    async () => isBusy(t, await failure(insertSecret(db, 'no')), false),
  );
  await insertSecret(db, 'given back');
});

t.test('one of two transactions in a deadlock is rolled back and repeated', async (t) => {
  const db = open(t);
  await insertSecret(db, 'one');
  await insertSecret(db, 'two');
  let attempts = 0;
  const both: PromiseWithResolvers<void>[] = [Promise.withResolvers(), Promise.withResolvers()];
  const ended: PromiseWithResolvers<void>[] = [Promise.withResolvers(), Promise.withResolvers()];
  const crossing = async (first: string, second: string, mine: number): Promise<void> => {
    let own = 0;
    await db.transaction().execute(async (trx) => {
      attempts += 1;
      own += 1;
      // Otherwise it could lock its second row before the other one has woken up, and both would be stuck again.
      if (own > 1) await ended[1 - mine]?.promise;
      await setValue(trx, first, `${mine}`);
      both[mine]?.resolve();
      await Promise.all(both.map(({ promise }) => promise));
      await setValue(trx, second, `${mine}`);
    });
    ended[mine]?.resolve();
  };
  await Promise.all([crossing('one', 'two', 0), crossing('two', 'one', 1)]);
  t.equal(attempts, 3);
  const rows = await db.selectFrom('secrets').select('value').where('name', 'in', ['one', 'two']).execute();
  t.equal(rows[0]?.value, rows[1]?.value, 'each transaction is written as a whole');
});

t.test('a conflict that does not end is refused as busy after several attempts', async (t) => {
  const db = open(t);
  let attempts = 0;
  const conflict = db.transaction().execute(async (trx) => {
    attempts += 1;
    await raise('40001').execute(trx);
  });
  isBusy(t, await failure(conflict), false);
  t.ok(attempts > 2 && attempts < 20, `${attempts} attempts`);
});

t.test('a connection that the server ends fails its statement, not the process', async (t) => {
  const troubles: unknown[] = [];
  const db = open(t, '?pool_size=3', (trouble) => troubles.push(trouble));
  const admin = open(t);
  const pidOf = async (on: Database) =>
    (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(on)).rows[0]?.pid;
  const end = (pid: unknown) => sql`select pg_terminate_backend(${pid}::int)`.execute(admin);
  await end(await pidOf(db));
  const idle = await failure(insertSecret(db, 'idle'));
  t.ok(idle === null || (idle instanceof DatabaseBusy && idle.isAway), 'an idle connection is dropped');
  const error = await failure(
    db.transaction().execute(async (trx) => {
      await insertSecret(trx, 'undone');
      await end(await pidOf(trx));
      await insertSecret(trx, 'undone as well');
    }),
  );
  isBusy(t, error, true);
  t.ok(troubles.length > 0);
  await insertSecret(db, 'next');
  const undone = db.selectFrom('secrets').select('name').where('name', 'like', 'undone%');
  t.strictSame(await undone.execute(), []);
});

for (const [code, problem] of [
  ['53100', 'database_full'],
  ['XX001', 'database_damaged'],
  ['58030', 'database_unusable'],
  ['25006', 'database_unusable'],
  ['42501', 'database_unusable'],
  ['53300', 'away'],
  ['57P03', 'away'],
  ['08006', 'away'],
] as const) {
  t.test(`the server reports ${code}: ${problem}`, async (t) => {
    const noted: unknown[] = [];
    const error = await failure(raise(code).execute(open(t, '', (trouble) => noted.push(trouble))));
    if (problem === 'away') isBusy(t, error, true);
    else t.match(error, { constructor: DatabaseFault, problem, message: /^DATABASE_URL: .*\(no\)$/ });
    t.strictSame(noted, [error]);
  });
}

t.test('sets the timeouts of each session, and what the address says', async (t) => {
  const names = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];
  names.push('application_name', 'search_path');
  const settings = async (db: Database) => {
    const columns = sql.join(names.map((name) => sql`current_setting(${name}) as ${sql.ref(name)}`));
    return Object.values((await sql<Record<string, string>>`select ${columns}`.execute(db)).rows[0] ?? {});
  };
  t.match(await settings(open(t)), ['30s', '5s', '1min', 'floodgate']);
  const other = open(t, '?statement_timeout=2345&application_name=it&options=-c%20search_path%3Dother');
  t.strictSame(await settings(other), ['2345ms', '5s', '1min', 'it', 'other']);
});

t.test(
  'frequent statements are prepared within bounds, and work after a change of their table',
  async (t) => {
    // A single connection, so that all are prepared on it.
    const db = open(t, '?pool_size=1');
    const often = async (names: readonly string[]) => {
      const query = db.selectFrom('secrets').selectAll().where('name', 'in', names);
      for (let i = 0; i < 20; i += 1) await query.execute();
    };
    const prepared = async () =>
      (await sql`select statement from pg_prepared_statements`.execute(db)).rows.length;
    await often(['one']);
    t.equal(await prepared(), 1);
    for (let length = 2; length <= 150; length += 1) await often(Array.from({ length }, (_, i) => `n${i}`));
    t.equal(await prepared(), 100, 'lists of any length do not fill the memory of the server');

    const one = (on: Database) => on.selectFrom('secrets').selectAll().where('name', 'in', ['one']).execute();
    await sql`alter table "secrets" add column "more" text`.execute(db);
    t.match(await one(db), [{ name: 'one', more: null }]);
    await often(['one']);
    await sql`alter table "secrets" add column "evenMore" text`.execute(db);
    let attempts = 0;
    const rows = await db.transaction().execute((trx) => {
      attempts += 1;
      return one(trx);
    });
    t.match(rows, [{ name: 'one', evenMore: null }]);
    t.equal(attempts, 2, 'the transaction is repeated once');
  },
);
