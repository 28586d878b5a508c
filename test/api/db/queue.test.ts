/** A queue attempts what is due, once, and its rows outlive the process. The queue of mails stands for both. */
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { migrate } from '#api/db/migrate.ts';
import { type Leased, pauseAfter, settle, startQueue } from '#api/db/queue.ts';
import { dueMails, insertMail } from '#api/mail/mailer.ts';
import { countingRandom } from '#test/support/api-app.ts';
import { testClock } from '#test/support/clock.ts';
import { openPrivateDatabase } from '#test/support/database.ts';
import { until } from '#test/support/until.ts';

const HOUR = 3_600_000;
const LEASE_MS = 15_000;

async function setUp(t: Test) {
  const db = await openPrivateDatabase(t);
  await migrate(db);
  const { advance, now } = testClock();
  const random = countingRandom();
  const errors: unknown[] = [];
  const add = () =>
    insertMail(db, { kind: 'test', to: 'a@example.com', subject: '', body: '' }, now(), random);
  const start = (
    attempt: (one: Leased) => Promise<void>,
    { pollMs = HOUR, stopMs = HOUR, placesMax = 5 } = {},
  ) => {
    const queue = startQueue({
      ...{ db, clock: now, random, table: 'mailOutbox', leaseMs: LEASE_MS, pollMs, stopMs, placesMax },
      choose: dueMails,
      attempt: async (leased) => leased.map(attempt),
      onError: (error) => errors.push(error),
    });
    t.teardown(() => queue.stop());
    return queue;
  };
  const done = (one: Leased) => settle(db, 'mailOutbox', one, now(), { status: 'sent', dueAt: null });
  const rows = () => db.selectFrom('mailOutbox').selectAll().orderBy('createdAt').execute();
  return { db, advance, now, add, start, done, rows, errors };
}

t.test('attempts each row once, with at most as many at once as there are places', async (t) => {
  const { add, done, rows, start } = await setUp(t);
  for (let i = 0; i < 12; i += 1) await add();
  const attempted: string[] = [];
  let open = 0;
  let openMax = 0;
  const queue = start(async (one) => {
    open += 1;
    openMax = Math.max(openMax, open);
    attempted.push(one.id);
    await setImmediate();
    await done(one);
    open -= 1;
  });
  await queue.idle();
  t.equal(attempted.length, 12);
  t.equal(new Set(attempted).size, 12);
  t.ok(openMax <= 5, `${openMax}`);
  t.ok(
    (await rows()).every(
      ({ attemptCount, lease, status }) => status === 'sent' && attemptCount === 1 && lease === null,
    ),
  );
  await add();
  queue.wake();
  await queue.idle();
  t.equal(attempted.length, 13, 'a wake finds new rows');
});

t.test('a poll finds rows without a wake, and goes on after errors', async (t) => {
  const { add, db, done, errors, rows, start } = await setUp(t);
  await db.schema.alterTable('mailOutbox').renameTo('away').execute();
  start(async (one) => void (await done(one)), { pollMs: 1 });
  await until(() => errors.length > 1, 'the error is told, more than once');
  await db.schema.alterTable('away').renameTo('mailOutbox').execute();
  await add();
  await until(async () => (await rows())[0]?.status === 'sent');
});

t.test('a lease without a result expires, and its late result is not recorded', async (t) => {
  const { add, advance, done, rows, start } = await setUp(t);
  await add();
  const lost: Leased[] = [];
  const dying = start(async (one) => void lost.push(one));
  await dying.idle();
  t.match(await rows(), [{ status: 'pending', attemptCount: 1, failureCount: 1, lease: String }]);
  const heirs: Leased[] = [];
  const heir = start(async (one) => void heirs.push(one));
  advance(LEASE_MS - 1);
  await heir.idle();
  t.equal(heirs.length, 0);
  advance(1);
  await heir.idle();
  t.match(heirs, [{ attemptCount: 2, failureCount: 2 }]);
  for (const one of lost) t.equal(await done(one), false);
  t.match(await rows(), [{ status: 'pending' }]);
  for (const one of heirs) t.equal(await done(one), true);
});

t.test('two processes share the rows, and none is attempted twice', async (t) => {
  const { add, done, start } = await setUp(t);
  for (let i = 0; i < 40; i += 1) await add();
  const attempted: string[] = [];
  const attempt = async (one: Leased): Promise<void> => {
    attempted.push(one.id);
    await done(one);
  };
  const queues = [start(attempt), start(attempt)];
  await Promise.all(queues.map((queue) => queue.idle()));
  await Promise.all(queues.map((queue) => queue.idle()));
  t.equal(attempted.length, 40);
  t.equal(new Set(attempted).size, 40);
});

t.test('stopping begins nothing, and waits a bounded time for attempts in progress', async (t) => {
  const { add, done, start } = await setUp(t);
  await add();
  const work = Promise.withResolvers<void>();
  let isBegun = false;
  const patient = start(async (one) => {
    isBegun = true;
    await work.promise;
    await done(one);
  });
  await until(() => isBegun);
  let isStopped = false;
  const stopped = patient.stop().then(() => {
    isStopped = true;
  });
  for (let i = 0; i < 20; i += 1) await setImmediate();
  t.notOk(isStopped);
  work.resolve();
  await stopped;
  await patient.idle();

  await add();
  let hangs = false;
  const hasty = start(
    () => {
      hangs = true;
      return new Promise(() => undefined);
    },
    { stopMs: 1 },
  );
  await until(() => hangs);
  await hasty.stop();
  t.pass('an attempt that hangs does not hold it up');
});

t.test('pauses double up to the longest, and are never shorter than they say', async (t) => {
  const retries = { firstMs: 5_000, maxMs: HOUR, jitter: 0.2 };
  const lowest = (bytes: number): Uint8Array => new Uint8Array(bytes);
  const highest = (bytes: number): Uint8Array => new Uint8Array(bytes).fill(255);
  const shortest = [1, 2, 3, 4, 5, 6, 7].map((count) => pauseAfter(count, retries, lowest));
  t.same(shortest, [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000]);
  t.same(
    [1, 2, 3].map((count) => pauseAfter(count, retries, highest)),
    [6_000, 12_000, 24_000],
  );
  for (const count of [11, 20, 1_000, 1e9]) t.equal(pauseAfter(count, retries, lowest), HOUR);
});
