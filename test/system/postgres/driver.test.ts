/** Every wait is bounded, conflicting transactions are repeated, and failures have our own messages. */
import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { type DatabaseOptions, openDatabase } from '#api/db/database.ts';
import { DatabaseBusy, DatabaseFault, type DatabaseProblem } from '#api/db/faults.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import type { PostgresLocation } from '#api/db/postgres-address.ts';
import { PostgresKysely, type PostgresOptions } from '#api/db/postgres-driver.ts';
import { DatabaseAway } from '#api/db/postgres-errors.ts';
import type { Database } from '#api/db/schema.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';

const shared = await createPostgresDatabase();
t.teardown(() => shared.drop());

function open(t: Test, options: PostgresOptions = {}, url = shared.url): Database {
  const db = new PostgresKysely(parseDatabaseUrl(url, '/') as PostgresLocation, options);
  t.teardown(() => db.destroy());
  return db;
}

const insertSecret = (db: Database, name: string, value = '') =>
  db.insertInto('secrets').values({ name, value, createdAt: '' }).execute();
const setValue = (db: Database, name: string, value: string) =>
  db.updateTable('secrets').set({ value }).where('name', '=', name).execute();
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

t.test('a statement over its time is refused as busy, and the connection serves again', async (t) => {
  const db = open(t, { statementTimeoutMs: 1000 });
  const error = await failure(sql`select pg_sleep(60)`.execute(db));
  t.ok(error instanceof DatabaseBusy, String(error));
  await insertSecret(db, 'after');
});

t.test('a write that waits too long for another session’s lock is refused as busy', async (t) => {
  const db = open(t, { lockTimeoutMs: 100 });
  await insertSecret(db, 'locked');
  const gate = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const other = open(t)
    .transaction()
    .execute(async (trx) => {
      await setValue(trx, 'locked', 'other');
      taken.resolve();
      await gate.promise;
    });
  await taken.promise;
  const error = await failure(setValue(db, 'locked', 'ours'));
  t.ok(error instanceof DatabaseBusy, String(error));
  t.equal(
    (await db.selectFrom('secrets').select('value').where('name', '=', 'locked').execute())[0]?.value,
    '',
    'reads do not wait',
  );
  gate.resolve();
  await other;
  await setValue(db, 'locked', 'ours');
});

t.test('a caller that finds no free connection in time is refused as busy', async (t) => {
  const db = open(t, { poolSize: 2, connectTimeoutMs: 2000 });
  const gate = Promise.withResolvers<void>();
  const held = [1, 2].map(() =>
    db.transaction().execute(async (trx) => {
      await sql`select 1`.execute(trx);
      await gate.promise;
    }),
  );
  const errors = await Promise.all([1, 2, 3].map(() => failure(insertSecret(db, 'no'))));
  for (const error of errors)
    t.ok(error instanceof DatabaseBusy && !(error instanceof DatabaseAway), String(error));
  gate.resolve();
  await Promise.all(held);
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
  await insertSecret(db, 'contended');
  const other = open(t);
  let attempts = 0;
  const error = await failure(
    db
      .transaction()
      .setIsolationLevel('serializable')
      .execute(async () => undefined)
      .then(() =>
        db.transaction().execute(async (trx) => {
          attempts += 1;
          await sql`set transaction isolation level repeatable read`.execute(trx);
          await trx.selectFrom('secrets').select('value').where('name', '=', 'contended').execute();
          await setValue(other, 'contended', String(attempts));
          await setValue(trx, 'contended', 'ours');
        }),
      ),
  );
  t.ok(error instanceof DatabaseBusy, String(error));
  t.ok(attempts > 2 && attempts < 20, `${attempts} attempts`);
});

t.test('a connection that the server ends fails its statement, not the process', async (t) => {
  const away: (string | null)[] = [];
  const db = open(t, { poolSize: 3, onAway: (error) => away.push(error?.message ?? null) });
  const admin = open(t);
  const pidOf = async (on: Database) =>
    (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(on)).rows[0]?.pid;
  const end = (pid: unknown) => sql`select pg_terminate_backend(${pid}::int)`.execute(admin);
  await end(await pidOf(db));
  const idle = await failure(insertSecret(db, 'idle'));
  t.ok(idle === null || idle instanceof DatabaseAway, 'an idle connection is dropped');
  const error = await failure(
    db.transaction().execute(async (trx) => {
      await insertSecret(trx, 'undone');
      await end(await pidOf(trx));
      await insertSecret(trx, 'undone as well');
    }),
  );
  t.ok(error instanceof DatabaseAway, String(error));
  await insertSecret(db, 'next');
  const names = (await db.selectFrom('secrets').select('name').execute()).map(({ name }) => name);
  t.notOk(names.some((name) => name.startsWith('undone')));
  t.match(away.at(-1), null, 'the recovery is reported');
  t.ok(away.length >= 2);
});

const problems: readonly (readonly [string, DatabaseProblem])[] = [
  ['53100', 'database_full'],
  ['XX001', 'database_damaged'],
  ['XX002', 'database_damaged'],
  ['58030', 'database_unusable'],
  ['25006', 'database_unusable'],
  ['42501', 'database_unusable'],
];
for (const [code, problem] of problems) {
  t.test(`the server reports ${code}: ${problem}, once to each observer`, async (t) => {
    const noted: DatabaseProblem[] = [];
    const options: DatabaseOptions = { onFault: (found) => noted.push(found) };
    const db = openDatabase(parseDatabaseUrl(shared.url, '/'), options);
    t.teardown(() => db.destroy());
    const raise = sql.raw(`do $$ begin raise exception 'no' using errcode = '${code}'; end $$`);
    const error = await failure(raise.execute(db));
    t.match(error, { name: 'DatabaseFault', problem, message: /^DATABASE_URL: .*\(no\)$/ });
    t.ok(error instanceof DatabaseFault);
    t.strictSame(noted, [problem]);
  });
}
for (const code of ['53300', '57P03', '08006']) {
  t.test(`the server reports ${code}: it is unavailable`, async (t) => {
    const raise = sql.raw(`do $$ begin raise exception 'no' using errcode = '${code}'; end $$`);
    t.ok((await failure(raise.execute(open(t)))) instanceof DatabaseAway);
  });
}

t.test('sets the timeouts and the schema of each session', async (t) => {
  const setting = async (db: Database, name: string) =>
    (await sql<{ value: string }>`select current_setting(${name}) as value`.execute(db)).rows[0]?.value;
  const db = open(t, { statementTimeoutMs: 1_234 });
  t.equal(await setting(db, 'statement_timeout'), '1234ms');
  t.equal(await setting(db, 'lock_timeout'), '5s');
  t.equal(await setting(db, 'idle_in_transaction_session_timeout'), '1min');
  t.equal(await setting(db, 'synchronous_commit'), 'on');
  t.equal(await setting(db, 'application_name'), 'floodgate');
  const address = `${shared.url}?schema=Other_One&application_name=it&synchronous=normal&statement_timeout_ms=2345`;
  const normal = openDatabase(parseDatabaseUrl(address, '/'));
  t.teardown(() => normal.destroy());
  t.equal(await setting(normal, 'synchronous_commit'), 'off');
  t.equal(await setting(normal, 'search_path'), '"Other_One"');
  t.equal(await setting(normal, 'application_name'), 'it');
  t.equal(await setting(normal, 'statement_timeout'), '2345ms');
});

t.test('refuses waiting callers when the database is closed', async (t) => {
  const db = new PostgresKysely(parseDatabaseUrl(shared.url, '/') as PostgresLocation, {
    poolSize: 1,
    connectTimeoutMs: 1000,
  });
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const open = db.transaction().execute(async (trx) => {
    await sql`select 1`.execute(trx);
    begun.resolve();
    await gate.promise;
  });
  await begun.promise;
  const refused = t.rejects(insertSecret(db, 'late'), DatabaseBusy);
  await setImmediate();
  const closing = db.destroy();
  await refused;
  gate.resolve();
  await open;
  await closing;
});
