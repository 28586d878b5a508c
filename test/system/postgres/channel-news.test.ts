/** The channel of PostgreSQL. The test starts its own server, without TEST_DATABASE=postgres. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { migrate } from '#api/db/migrate.ts';
import type { PostgresLocation } from '#api/db/postgres-address.ts';
import { startChannelNews } from '#api/processes/channel-news.ts';
import type { News } from '#api/processes/news.ts';
import { listenerTo } from '#test/api/processes/support.ts';
import { startPostgres } from '#test/support/postgres-process.ts';
import { until } from '#test/support/until.ts';

const server = await startPostgres();
t.teardown(() => server.close());
const location = ((): PostgresLocation => {
  const found = parseDatabaseUrl(server.url, '/');
  if (found.kind !== 'postgres') throw new Error('not PostgreSQL');
  return found;
})();
const db = openDatabase(location);
t.teardown(() => db.destroy());
await migrate(db);

const opened = ['gap', 'events', 'mails'];

interface Heard {
  readonly news: News;
  readonly heard: string[];
  readonly lines: string[];
}

/** @param proofMs by default as in production, because a busy machine is late with its proofs */
async function listen(t: Test, applicationName: string, proofMs?: number): Promise<Heard> {
  const heard: string[] = [];
  const lines: string[] = [];
  const news = await startChannelNews({
    location: { ...location, applicationName },
    listener: listenerTo(heard),
    log: {
      info: (_fields, message) => void lines.push(message),
      warn: (_fields, message) => void lines.push(message),
    },
    ...(proofMs === undefined ? {} : { proofMs }),
  });
  t.teardown(() => news.close());
  t.equal(news.isHeard(), true);
  t.strictSame(heard, opened, 'changes from before the connection may be missed');
  heard.length = 0;
  return { news, heard, lines };
}

t.test('events of other processes, and none of unrelated channels', async (t) => {
  const one = await listen(t, 'one');
  const other = await listen(t, 'other');
  await sql`select pg_notify('floodgate', 'no JSON'), pg_notify('floodgate', '["proof"]')`.execute(db);
  for (let i = 0; i < 100; i += 1) other.news.tellEvents();
  await until(() => one.heard.length > 0);
  one.news.tellEvents();
  await until(() => other.heard.length > 0);
  t.strictSame([one.heard, other.heard], [['events'], ['events']], 'in one notification each');
});

t.test('mails, when their transaction is committed', async (t) => {
  const { heard } = await listen(t, 'mails');
  const now = '2026-01-01T00:00:00.000Z';
  await db.transaction().execute(async (trx) => {
    await trx
      .insertInto('mailOutbox')
      .values({
        id: 'm',
        createdAt: now,
        kind: 'test',
        recipient: 'a@example.com',
        replyTo: null,
        subject: '',
        body: '',
        status: 'pending',
        updatedAt: now,
        attemptCount: 0,
        failureCount: 0,
        dueAt: now,
        lease: null,
        lastError: null,
      })
      .execute();
    await sql`select pg_notify('floodgate', '["state","w","e"]')`.execute(db);
    await until(() => heard.length > 0);
    t.strictSame(heard, ['w e']);
  });
  await until(() => heard.length > 1);
  t.strictSame(heard, ['w e', 'mails']);
});

t.test('a lost connection is opened again, and then all caches are dropped', async (t) => {
  const { news, heard, lines } = await listen(t, 'lost');
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lost'`.execute(
    db,
  );
  await until(() => heard.includes('mails'));
  t.strictSame(heard, opened);
  t.equal(news.isHeard(), true);
  t.match(lines, [/do not arrive/, /arrive again/]);
});

t.test('a certificate that is missing during a reconnect is read again later', async (t) => {
  const heard: string[] = [];
  const moving = { ...location, applicationName: 'moving' };
  const log = { info() {}, warn() {} };
  const news = await startChannelNews({ location: moving, listener: listenerTo(heard), log });
  t.teardown(() => news.close());
  const missing = {
    kind: 'on',
    checks: 'authority',
    rootCertificate: '/nowhere/ca.pem',
    certificate: null,
    key: null,
  };
  Object.assign(moving, { tls: missing });
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'moving'`.execute(
    db,
  );
  await until(() => !news.isHeard());
  heard.length = 0;
  await sleep(1_000);
  Object.assign(moving, { tls: location.tls });
  await until(() => news.isHeard());
  t.strictSame(heard, opened);
});

t.test('a silent server counts as unavailable; a start does not wait for it', async (t) => {
  const { news, heard, lines } = await listen(t, 'silent', 1000);
  server.freeze();
  t.teardown(() => server.thaw());
  await until(() => !news.isHeard());
  t.match(lines, [/do not arrive/]);
  server.thaw();
  await until(() => news.isHeard());
  t.strictSame(heard, opened);
  await news.close();
  t.equal(news.isHeard(), false);

  await server.kill();
  const late = await startChannelNews({ location, listener: listenerTo([]), log: { info() {}, warn() {} } });
  t.teardown(() => late.close());
  t.equal(late.isHeard(), false);
  await server.restart();
  await until(() => late.isHeard());
});
