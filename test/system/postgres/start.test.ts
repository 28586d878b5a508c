/** A start on PostgreSQL: one of many migrates, a late server is waited for, and a mistake gives one sentence. */
import { chmodSync, chownSync, copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { awaitDatabase } from '#api/db/database.ts';
import { DatabaseUnavailable } from '#api/db/faults.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { migrate, SchemaDiffers } from '#api/db/migrate.ts';
import { migrations } from '#api/db/migrations/index.ts';
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

/** Waits for the database at most `waitMs`, by default not at all. */
const reach = (db: Database, url: string, waitMs = 0) =>
  awaitDatabase(db, parseDatabaseUrl(url, '/'), waitMs, () => undefined);

t.test('of many first starts one migrates, and all start', async (t) => {
  const url = await empty(t);
  const ran = await Promise.all(Array.from({ length: 8 }, () => migrate(open(t, url))));
  const names = migrations.map(({ name }) => name);
  t.strictSame(ran.flat().toSorted(), names.toSorted());
  t.equal(ran.filter(({ length }) => length > 0).length, 1, 'one process runs all of them');
  t.strictSame(await migrate(open(t, url)), []);
});

t.test('refuses a database of a newer version', async (t) => {
  const url = await empty(t);
  const db = open(t, url);
  await migrate(db);
  await sql`insert into "migrations" ("name", "timestamp") values ('999-future', '')`.execute(db);
  await t.rejects(migrate(db), { constructor: SchemaDiffers, message: /999-future/ });
});

t.test('a failed migration leaves no change and no lock', async (t) => {
  const url = await empty(t);
  const db = open(t, url);
  await sql`create table "events" ("id" text)`.execute(db);
  await t.rejects(migrate(db), /events/);
  t.equal((await sql`select 1 where to_regclass('organizations') is not null`.execute(db)).rows.length, 0);
  await sql`drop table "events"`.execute(db);
  t.equal((await migrate(open(t, url))).length, migrations.length);
});

t.test('the tables are in the schema that the address names', async (t) => {
  const url = await empty(t);
  await ask(url, 'create schema "Surveys"');
  const db = open(t, `${url}?schema=Surveys`);
  await migrate(db);
  const { rows } = await sql`select distinct table_schema as name from information_schema.tables
    where table_name in ('responses', 'migrations')`.execute(db);
  t.strictSame(rows, [{ name: 'Surveys' }]);
  t.strictSame(await migrate(open(t, `${url}?schema=Surveys`)), []);
});

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

t.test('reports mistakes in the address, and missing rights of its user', async (t) => {
  const url = await empty(t);
  await ask(url, `create role "stranger" login password 'pw'`).catch(() => undefined);
  const as = (user: string, path = new URL(url).pathname) => {
    const other = new URL(url);
    other.username = user;
    other.pathname = path;
    return other.href;
  };
  const none = as('postgres', 'nowhere');
  await t.rejects(reach(open(t, none), none), {
    constructor: DatabaseUnavailable,
    message: /there is no database nowhere; make it/,
  });
  const stranger = as('stranger');
  await reach(open(t, stranger), stranger);
  await t.rejects(migrate(open(t, stranger)), {
    constructor: DatabaseUnavailable,
    message: /may not make tables .*owner/,
  });
  const unknown = as('unknown');
  await t.rejects(
    reach(open(t, unknown), unknown, 60_000),
    { message: /refuses the user .*user and password/ },
    'fails at once, without waiting',
  );
  const latinName = `latin_${process.pid}`;
  const encoded = await createPostgresDatabase('empty');
  t.teardown(encoded.drop);
  await ask(
    url,
    `create database ${latinName} encoding 'SQL_ASCII' locale_provider libc locale 'C' template template0`,
  );
  t.teardown(() => ask(encoded.url, `drop database ${latinName} with (force)`));
  const latin = as('postgres', latinName);
  await t.rejects(reach(open(t, latin), latin), { message: /encoded in SQL_ASCII/ });
  const plain = `${url}?sslmode=verify-full`;
  await t.rejects(reach(open(t, plain), plain, 60_000), { message: /no encrypted connection/ });
});

function startApi(t: Test, env: Record<string, string>): Started {
  const api = start(['api/main.ts'], { API_PORT: '0', ...env });
  t.teardown(() => api.stop('SIGKILL'));
  return api;
}

t.test('a server that is down: exit 1 with one sentence, without the password', async (t) => {
  const port = await freePort();
  const api = startApi(t, {
    DATABASE_URL: `postgres://me:hunter2@127.0.0.1:${port}/floodgate?wait_seconds=1`,
  });
  t.equal(await api.ended(), 1);
  const lines = api.output().trimEnd().split('\n');
  const said = lines.filter((line) => !line.startsWith('{'));
  t.equal(said.length, 1, api.output());
  t.match(
    said[0],
    `The API cannot start: DATABASE_URL: the server at 127.0.0.1:${port} does not answer (connect ECONNREFUSED`,
  );
  t.match(said[0], /; start it, or correct the address$/);
  t.match(api.output(), /waiting for the database/);
  t.notMatch(api.output(), /hunter2/);
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

  const encrypted = async (query: string): Promise<unknown> => {
    const url = server.url + query;
    const db = open(t, url);
    await reach(db, url);
    const { rows } = await sql<{
      ssl: number;
    }>`select ssl from pg_stat_ssl where pid = pg_backend_pid()`.execute(db);
    return rows[0]?.ssl;
  };
  t.equal(await encrypted(''), 0);
  t.equal(await encrypted(`?sslmode=verify-full&sslrootcert=${authority.ca}`), 1);
  t.equal(await encrypted(`?sslmode=verify-ca&sslrootcert=${authority.ca}`), 1);
  t.equal(await encrypted('?sslmode=no-verify'), 1);
  const refused = { constructor: DatabaseUnavailable, message: /no encrypted connection .*sslrootcert/ };
  await t.rejects(encrypted('?sslmode=verify-full'), refused, 'an unknown authority');
  await t.rejects(encrypted('?sslmode=verify-ca'), refused);
  await t.rejects(
    encrypted(`?sslmode=verify-full&sslrootcert=${createAuthority(t).ca}`),
    refused,
    'another authority',
  );
  const byName = `postgres://postgres@localhost:${server.port}/postgres?sslrootcert=${authority.ca}`;
  const db = open(t, `${byName}&sslmode=verify-full`);
  await t.rejects(reach(db, `${byName}&sslmode=verify-full`), refused, 'another name');
  await reach(open(t, `${byName}&sslmode=verify-ca`), byName.replace('?', '?sslmode=verify-ca&'));
  t.throws(() => openTestDatabase(`${server.url}?sslmode=verify-full&sslrootcert=/no/such.pem`), {
    constructor: DatabaseUnavailable,
    message: /^DATABASE_URL: sslrootcert cannot be read/,
  });
});
