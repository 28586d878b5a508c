/** `db copy` from SQLite to PostgreSQL, as an operator runs it. */
import { join } from 'node:path';
import pg from 'pg';
import t, { type Test } from 'tap';
import { copyDatabase } from '#api/db/copy/copy.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { openAlone } from '#api/db/sqlite-snapshot.ts';
import { asText, execute, oddSource, rowsOf, type Source, tablesOf } from '#test/api/db/copy/copies.ts';
import { apiCli, apiCommand } from '#test/support/cli.ts';
import { ask, createPostgresDatabase } from '#test/support/postgres.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

async function emptyPostgres(t: Test): Promise<string> {
  const { url, drop } = await createPostgresDatabase('empty');
  t.teardown(drop);
  return url;
}

const copy = (from: string, to: string) => apiCommand(['db', 'copy', '--json', '--from', from, '--to', to]);

async function isSame(t: Test, { path }: Source, server: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    for (const table of tablesOf(path)) {
      const { rows } = await client.query(`select * from "${table}"`);
      t.strictSame(rows.map(asText).sort(), rowsOf(path, table), table);
    }
    const { rows } = await client.query(`select "tablename" from pg_tables where "tablename" like 'copy%'`);
    t.strictSame(rows, [], 'the mark of a copy is gone');
  } finally {
    await client.end();
  }
}

t.test('every row of every table is unchanged', async (t) => {
  const source = await oddSource(t);
  const server = await emptyPostgres(t);
  const { code, stdout, stderr } = await apiCli(['db', 'copy', '--from', source.from, '--to', server]);
  t.equal(code, 0, stderr);
  t.match(stdout, `${source.rows.toLocaleString('en')} rows copied.`);
  t.match(stdout, /^responses +30$/m);
  await isSame(t, source, server);

  const occupied = await copy(source.from, server);
  t.equal(occupied.code, 1);
  t.match(occupied.stderr, 'the target is not empty; name an empty database');
  await isSame(t, source, server);

  const other = await emptyPostgres(t);
  await ask(other, 'create table "of another program" ("a" text)');
  t.match((await copy(source.from, other)).stderr, 'the target is not empty');
});

t.test('kill -9 in the middle: the API waits, and the same command begins anew', async (t) => {
  const source = await oddSource(t, (table) => (table === 'responses' ? 5_000 : 100));
  const server = await emptyPostgres(t);
  for (const part of [0.001, 0.3, 0.8]) {
    const rows = String(Math.floor(source.rows * part));
    const killed = start(['test/api/db/copy/killed-copy.ts', source.from, server, rows]);
    t.equal(await killed.ended(), null, killed.output());
    t.equal(killed.child.signalCode, 'SIGKILL');
  }
  const api = start(['api/main.ts'], { DATABASE_URL: server, API_PORT: '0' });
  t.equal(await api.ended(), 1);
  t.match(api.output(), 'The API cannot start: DATABASE_URL: a copy into this database has not ended');
  execute(source.path, `update "organizations" set "name" = 'another' where "rowid" = 5`);
  const { code, stdout, stderr } = await copy(source.from, server);
  t.equal(code, 0, stderr);
  t.equal(JSON.parse(stdout).rows, source.rows);
  await isSame(t, source, server);
});

t.test('a copy that an earlier version began is begun anew', async (t) => {
  const source = await oddSource(t);
  const server = await emptyPostgres(t);
  await ask(server, 'create table "copyProgress" ("tableName" text primary key)');
  const { code, stderr } = await copy(source.from, server);
  t.equal(code, 0, stderr);
  await isSame(t, source, server);
});

t.test('an API moves with its data; while either runs, the other does not start', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'source.sqlite');
  const from = `file:${path}`;
  const server = await emptyPostgres(t);
  const env = { API_PORT: '0', STORAGE_PATH: join(folder, 'uploads'), BOOTSTRAP_API_KEY: 'fbk_moved' };
  const first = start(['api/main.ts'], { ...env, DATABASE_URL: from });
  t.teardown(() => first.stop());
  await first.until(/API ready/);
  const refused = await copy(from, server);
  t.equal(refused.code, 1);
  t.match(refused.stderr, /source\.sqlite is in use by another process, most likely the API; stop it first/);
  t.equal(await first.stop(), 0);

  const alone = openAlone(path);
  const second = start(['api/main.ts'], { ...env, DATABASE_URL: from });
  t.equal(await second.ended(), 1);
  t.match(second.output(), 'The API cannot start:');
  alone.close();

  const moved = await copy(from, server);
  t.equal(moved.code, 0, moved.stderr);
  const api = start(['api/main.ts'], { ...env, DATABASE_URL: server });
  t.teardown(() => api.stop());
  const [, address = ''] = await api.until(/API ready on (\S+)/);
  t.notMatch(api.output(), 'API key', 'the credentials came with the data, so none are printed');
  const me = await fetch(`${address}/api/v1/management/me`, { headers: { 'x-api-key': 'fbk_moved' } });
  t.equal(me.status, 200, 'the copied key is accepted');
});

t.test('names the rows that PostgreSQL refuses; once they are mended, the copy ends', async (t) => {
  const source = await oddSource(t);
  const server = await emptyPostgres(t);
  for (const [bad, good, message] of [
    [
      `update "languages" set "code" = 'a' || char(0) || 'b' where "rowid" = 3`,
      `update "languages" set "code" = 'a b' where "rowid" = 3`,
      /^the target refuses rows of languages, from \S.* to \S.*: .*0x00/,
    ],
    [
      `update "languages" set "workspaceId" = 'nobody' where "rowid" = 3`,
      `update "languages" set "workspaceId" = (select min("id") from "workspaces") where "rowid" = 3`,
      /^the target refuses rows of languages, .* violates foreign key constraint/,
    ],
  ] as const) {
    execute(source.path, bad);
    const { code, stderr } = await copy(source.from, server);
    t.equal(code, 1);
    t.match(stderr, message);
    execute(source.path, good);
  }
  const again = await copy(source.from, server);
  t.equal(again.code, 0, again.stderr);
  await isSame(t, source, server);
});

t.test('of two copies into one target, one completes and the other one stops', async (t) => {
  const [source, another] = [await oddSource(t, () => 300), await oddSource(t, () => 10)];
  const server = await emptyPostgres(t);
  const to = parseDatabaseUrl(server, '/');
  if (to.kind !== 'postgres') throw new Error('Not a server');
  let second: Promise<unknown> | null = null;
  await copyDatabase({
    path: source.path,
    to,
    onRows() {
      second ??= copyDatabase({ path: another.path, to, onRows: () => undefined }).catch(
        (error: unknown) => error,
      );
    },
  });
  t.match(await second, {
    message: 'another copy writes into the same database; wait for its end, or end it',
  });
  await isSame(t, source, server);
});
