/** A start on PostgreSQL: one of many migrates, a late server is waited for, and a mistake gives one sentence. */
import { chmodSync, chownSync, copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { awaitDatabase } from '#api/db/database.ts';
import { DatabaseFault } from '#api/db/faults.ts';
import { migrate, migrations, SchemaDiffers } from '#api/db/migrate.ts';
import type { Database } from '#api/db/schema.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { openTestDatabase } from '#test/support/database.ts';
import { freePort } from '#test/support/ports.ts';
import { ask, createPostgresDatabase } from '#test/support/postgres.ts';
import { startPostgres } from '#test/support/postgres-process.ts';
import { type Started, start } from '#test/support/process.ts';

async function empty(t: Test): Promise<string> {
  const { url, drop } = await createPostgresDatabase('empty');
  t.teardown(drop);
  return url;
}

function open(t: Test, url: string): Database {
  const db = openTestDatabase(url);
  t.teardown(() => db.destroy());
  return db;
}

t.test('of many first starts one migrates, and all start', async (t) => {
  const url = await empty(t);
  const ran = await Promise.all(Array.from({ length: 8 }, () => migrate(open(t, url))));
  t.strictSame(ran.flat(), Object.keys(migrations));
  t.strictSame(await migrate(open(t, url)), []);
});

t.test(
  'a database of another version is refused, and a failed migration leaves no change and no lock',
  async (t) => {
    const url = await empty(t);
    const db = open(t, url);
    await sql`create table "events" ("id" text)`.execute(db);
    await t.rejects(migrate(db), { constructor: SchemaDiffers, message: /"events" already exists/ });
    t.equal((await sql`select 1 where to_regclass('organizations') is not null`.execute(db)).rows.length, 0);
    await sql`drop table "events"`.execute(db);
    t.equal((await migrate(open(t, url))).length, 1);
    await sql`insert into "migrations" ("name", "timestamp") values ('999-future', '2026-01-01')`.execute(db);
    await t.rejects(migrate(db), { constructor: SchemaDiffers, message: /999-future/ });
  },
);

t.test(
  'every text sorts by its bytes, every number has 64 bits, every foreign key has an index',
  async (t) => {
    const db = open(t, await empty(t));
    await migrate(db);
    const { rows: columns } = await sql`
    select table_name, column_name from information_schema.columns
    where table_schema = 'public' and table_name not like 'migrations%'
      and not (data_type = 'bigint' or (data_type = 'text' and collation_name = 'C'))`.execute(db);
    t.strictSame(columns, []);
    const { rows: keys } = await sql`
    select conrelid::regclass::text as name, conname from pg_constraint as keys
    where contype = 'f' and not exists (
      select 1 from pg_index where indrelid = conrelid and indkey[0] = conkey[1])`.execute(db);
    t.strictSame(keys, []);
  },
);

t.test('reports mistakes in the address, and missing rights of its user, at once', async (t) => {
  const url = await empty(t);
  await ask(url, `create role "stranger" login password 'pw'`).catch(() => undefined);
  const as = (user: string, path = new URL(url).pathname) => {
    const other = new URL(url);
    other.username = user;
    other.pathname = path;
    return open(t, other.href);
  };
  const refused = { constructor: DatabaseFault, problem: 'database_unusable' };
  const reach = (db: Database) => awaitDatabase(db, 600_000);
  await t.rejects(reach(as('postgres', 'nowhere')), { ...refused, message: /"nowhere" does not exist/ });
  await t.rejects(reach(as('unknown')), { ...refused, message: /rights of the user .*"unknown"/ });
  await t.rejects(reach(open(t, `${url}?sslmode=verify-full`)), { ...refused, message: /sslmode .*SSL/ });
  const stranger = as('stranger');
  await reach(stranger);
  await t.rejects(migrate(stranger), { ...refused, message: /permission denied/ });
});

function startApi(t: Test, env: Record<string, string>): Started {
  const api = start(['api/main.ts'], { API_PORT: '0', ...env });
  t.teardown(() => api.stop('SIGKILL'));
  return api;
}

t.test('a server that is down: one sentence, without the password', async (t) => {
  const port = await freePort();
  const db = open(t, `postgres://me:hunter2@127.0.0.1:${port}/floodgate`);
  await t.rejects(awaitDatabase(db, 300), {
    message:
      /^DATABASE_URL: the server does not answer; start it, or correct the address \(connect ECONNREFUSED/,
  });
});

t.test('waits for a server that starts later; concurrent first starts do not conflict', async (t) => {
  const server = await startPostgres();
  t.teardown(() => server.close());
  await server.kill();
  const env = {
    DATABASE_URL: server.url,
    BOOTSTRAP_API_KEY: 'fbk_x',
    BOOTSTRAP_PASSWORD: 'Password1',
    BOOTSTRAP_WORKSPACE_ID: 'ws1',
  };
  const apis = [startApi(t, env), startApi(t, env)];
  for (const api of apis) await api.until(/waiting for the database/);
  await server.restart();
  for (const api of apis) await api.until(/API ready/);
  const db = open(t, server.url);
  const { count } = await db
    .selectFrom('workspaces')
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  t.equal(count, 1);
  for (const api of apis) t.equal(await api.stop(), 0);
});

t.test('TLS: verifies the server as the address says', async (t) => {
  const server = await startPostgres();
  t.teardown(() => server.close());
  const authority = createAuthority(t);
  const local = authority.issue('local', 'IP:127.0.0.1');
  const { uid, gid } = statSync(server.folder);
  for (const [from, name] of [
    [local.cert, 'server.crt'],
    [local.key, 'server.key'],
  ] as const) {
    const to = join(server.folder, name);
    copyFileSync(from, to);
    chmodSync(to, 0o600);
    chownSync(to, uid, gid);
    await ask(
      server.url,
      `alter system set ${name.endsWith('key') ? 'ssl_key_file' : 'ssl_cert_file'} = '${to}'`,
    );
  }
  await ask(server.url, 'alter system set ssl = on');
  await server.kill();
  await server.restart();

  const encrypted = async (query: string, host = '127.0.0.1'): Promise<unknown> => {
    const db = open(t, `postgres://postgres@${host}:${server.port}/postgres${query}`);
    await awaitDatabase(db, 600_000);
    const ssl = sql<{ ssl: number }>`select ssl from pg_stat_ssl where pid = pg_backend_pid()`;
    return (await ssl.execute(db)).rows[0]?.ssl;
  };
  const full = `?sslmode=verify-full&sslrootcert=${authority.ca}`;
  const any = `?sslmode=verify-ca&sslrootcert=${authority.ca}`;
  t.equal(await encrypted(''), 0);
  t.equal(await encrypted(full), 1);
  t.equal(await encrypted(any), 1);
  t.equal(await encrypted(any, 'localhost'), 1);
  t.equal(await encrypted('?sslmode=no-verify'), 1);
  const refused = { constructor: DatabaseFault, message: /sslmode \(.*certificate/i };
  await t.rejects(encrypted('?sslmode=verify-full'), refused, 'an unknown authority');
  const others = createAuthority(t).ca;
  await t.rejects(encrypted(`?sslmode=verify-full&sslrootcert=${others}`), refused, 'another authority');
  await t.rejects(encrypted(full, 'localhost'), { ...refused, message: /does not match/ }, 'another name');
});
