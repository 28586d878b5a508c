/** `db copy` and `db verify`, as an operator runs them. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { openSnapshot, openTarget } from '#api/db/copy/ends.ts';
import { differences, execute, names, oddSource, shape, twoAtOnce } from '#test/api/db/copy/copies.ts';
import { apiCli, apiCommand } from '#test/support/cli.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Returns the statements of indexes that have one. */
function indexesOf(path: string): readonly string[] {
  const sqlite = new SqliteDatabase(path, { readonly: true });
  try {
    return sqlite
      .prepare<[], string>(
        `select "sql" from sqlite_master where "type" = 'index' and "sql" is not null order by "name"`,
      )
      .pluck()
      .all();
  } finally {
    sqlite.close();
  }
}

t.test('copies every row of every table unchanged, and compares both sides', async (t) => {
  const { folder, path, from, rows } = await oddSource(t);
  const target = join(folder, 'target.sqlite');
  const { code, stdout, stderr } = await apiCli(['db', 'copy', '--from', from, '--to', `file:${target}`]);
  t.equal(code, 0, stderr);
  t.match(stdout, `${rows.toLocaleString('en')} rows copied.`);
  t.match(stdout, 'Both databases hold the same rows.');
  t.match(stdout, /^responses +30 +30 +the same$/m);
  t.strictSame(differences(path, target), []);

  t.test('verifies the copy as JSON', async (t) => {
    const verified = await apiCommand(['db', 'verify', '--json', '--from', from, '--to', `file:${target}`]);
    t.equal(verified.code, 0, verified.stderr);
    const { isSame, tables } = JSON.parse(verified.stdout);
    t.equal(isSame, true);
    t.strictSame(tables.map(({ table }: { table: string }) => table).sort(), [...names].sort());
    for (const { table, from, to } of tables) {
      t.equal(from.digest, to.digest, table);
      t.match(from.digest, /^[0-9a-f]{32}$/);
    }
  });

  t.test('refuses a target that has other data, and leaves it unchanged', async (t) => {
    const again = await apiCommand(['db', 'copy', '--from', from, '--to', `file:${target}`]);
    t.equal(again.code, 1);
    t.match(
      again.stderr,
      /the target has other data \(in \w+, \w+, \w+ and \d+ more\); name an empty database/,
    );
    t.strictSame(differences(path, target), []);
  });

  for (const [what, statement, message] of [
    [
      'a changed value',
      `update "responses" set "data" = "data" || ' ' where "rowid" = 7`,
      /^responses ".*" is not the same$/m,
    ],
    [
      'a changed number',
      `update "files" set "countedBytes" = "countedBytes" + 1 where "rowid" = 2`,
      /^files ".*" is not the same$/m,
    ],
    [
      'an emptied value',
      `update "surveys" set "document" = '' where "rowid" = 4`,
      /^surveys ".*" is not the same$/m,
    ],
    ['a missing row', `delete from "contacts" where "rowid" = 3`, /^contacts ".*" is not in the target$/m],
    [
      'an extra row',
      `insert into "tags" select 'z more', "createdAt", "updatedAt", "workspaceId", 'more' from "tags" where "rowid" = 1`,
      /^tags "z more" is in the target only$/m,
    ],
    [
      'a changed key',
      `update "mailOutbox" set "id" = 'z another' where "rowid" = 1`,
      /^mailOutbox ".*" is not in the target\nmailOutbox "z another" is in the target only$/m,
    ],
    [
      'swapped values',
      `update "workspaces" set "name" = case "rowid" when 1 then 'x' else 'y' end where "rowid" < 3`,
      /^workspaces ".*" is not the same\nworkspaces ".*" is not the same$/m,
    ],
  ] as const) {
    t.test(`verify finds ${what}`, async (t) => {
      const tampered = join(folder, 'tampered.sqlite');
      const backup = await apiCommand(['db', 'backup', tampered, '--from', `file:${target}`]);
      t.equal(backup.code, 0, backup.stderr);
      t.teardown(() => rmSync(tampered));
      execute(tampered, statement);
      const table = /"(\w+)"/.exec(statement)?.[1] ?? '';
      const verified = await apiCommand(['db', 'verify', '--from', from, '--to', `file:${tampered}`]);
      t.equal(verified.code, 1);
      t.match(verified.stdout, new RegExp(`^${table} +30 +\\d+ +DIFFERENT$`, 'm'));
      t.match(verified.stderr, `The databases differ in ${table}.`);
      t.match(verified.stderr, message);
    });
  }
});

t.test('kill -9 several times: the same command resumes, and the API waits for its end', async (t) => {
  const { folder, path, from, rows } = await oddSource(t, (table) => (table === 'responses' ? 20_000 : 100));
  const target = join(folder, 'target.sqlite');
  const to = `file:${target}`;
  for (const part of [0.3, 0.6, 0.95]) {
    const copy = start(['test/support/killed-copy.ts', from, to, String(Math.floor(rows * part))]);
    t.equal(await copy.ended(), null, copy.output());
    t.equal(copy.child.signalCode, 'SIGKILL');
    t.strictSame(indexesOf(target), [], 'indexes are created last');
  }

  const api = start(['api/main.ts'], { DATABASE_URL: to, API_PORT: '0' });
  t.equal(await api.ended(), 1);
  t.match(
    api.output(),
    'The API cannot start: DATABASE_URL: a copy into this database has not ended; run the same',
  );

  const other = await apiCommand(['db', 'copy', '--from', `file:${(await oddSource(t)).path}`, '--to', to]);
  t.equal(other.code, 1);
  t.match(other.stderr, `the target has part of a copy of ${from}; resume that copy, or add --restart`);

  const { code, stdout, stderr } = await apiCommand(['db', 'copy', '--json', '--from', from, '--to', to]);
  t.equal(code, 0, stderr);
  const copied = JSON.parse(stdout);
  t.equal(copied.rows + copied.resumedAt, rows);
  t.ok(copied.resumedAt >= rows * 0.95, `resumed at ${copied.resumedAt} of ${rows}`);
  t.strictSame(differences(path, target), []);
  t.ok(indexesOf(path).length > 10);
  t.strictSame(indexesOf(target), indexesOf(path));
  const sqlite = new SqliteDatabase(target, { readonly: true });
  t.teardown(() => sqlite.close());
  t.equal(
    sqlite.prepare(`select count(*) from sqlite_master where name = 'copyProgress'`).pluck().get(),
    0,
    'the progress is deleted',
  );
});

t.test('rows that an index refuses: the copy fails, and --restart begins again', async (t) => {
  const { folder, path, from } = await oddSource(t, () => 100);
  const to = `file:${join(folder, 'target.sqlite')}`;
  const [index = ''] = indexesOf(path).filter((text) => text.includes('"responses_emailDigest"'));
  execute(path, 'drop index "responses_emailDigest"');
  execute(
    path,
    `update "responses" set "emailDigest" = 'one', "surveyId" = (select min("id") from "surveys")`,
  );
  const found = await apiCommand(['db', 'copy', '--from', from, '--to', to]);
  t.equal(found.code, 1);
  t.match(
    found.stderr,
    'the target refuses rows by its index responses_emailDigest: UNIQUE constraint failed',
  );
  execute(path, 'update "responses" set "emailDigest" = null');
  execute(path, index);
  const again = await apiCommand(['db', 'copy', '--restart', '--from', from, '--to', to]);
  t.equal(again.code, 0, again.stderr);
  t.strictSame(indexesOf(join(folder, 'target.sqlite')), indexesOf(path));
});

t.test('finds a source that was changed in between, and --restart begins again', async (t) => {
  const { folder, path, from, rows } = await oddSource(t, () => 100);
  const target = join(folder, 'target.sqlite');
  const to = `file:${target}`;
  await start(['test/support/killed-copy.ts', from, to, String(rows - 50)]).ended();
  execute(path, `update "organizations" set "name" = 'another' where "rowid" = 5`);
  const found = await apiCommand(['db', 'copy', '--from', from, '--to', to]);
  t.equal(found.code, 1);
  t.match(found.stderr, 'The databases differ in organizations. The source was changed since the copy began');
  const again = await apiCommand(['db', 'copy', '--restart', '--json', '--from', from, '--to', to]);
  t.equal(again.code, 0, again.stderr);
  t.match(JSON.parse(again.stdout), { rows, resumedAt: 0 });
  t.strictSame(differences(path, target), []);
});

t.test('while the API runs only a rehearsal is possible; while a copy runs, no API starts', async (t) => {
  const folder = temporaryFolder(t);
  const from = `file:${join(folder, 'source.sqlite')}`;
  const to = `file:${join(folder, 'target.sqlite')}`;
  const env = { DATABASE_URL: from, API_PORT: '0', STORAGE_PATH: join(folder, 'uploads') };
  const api = start(['api/main.ts'], env);
  t.teardown(() => api.stop());
  await api.until(/API ready/);
  const refused = await apiCommand(['db', 'copy', '--from', from, '--to', to]);
  t.equal(refused.code, 1);
  t.match(refused.stderr, /source\.sqlite is in use by another process, most likely the API; stop it first/);
  t.notOk(existsSync(join(folder, 'target.sqlite')), 'no file is created');
  const rehearsal = await apiCommand(['db', 'copy', '--live', '--from', from, '--to', to]);
  t.equal(rehearsal.code, 0, rehearsal.stderr);
  await api.stop();

  const source = await openSnapshot(
    { kind: 'file', path: join(folder, 'source.sqlite') },
    { shape, isExclusive: true, what: 'the source' },
  );
  const second = start(['api/main.ts'], env);
  t.equal(await second.ended(), 1);
  t.match(second.output(), 'The API cannot start:');
  await source.close();

  const moved = start(['api/main.ts'], { ...env, DATABASE_URL: to });
  t.teardown(() => moved.stop());
  await moved.until(/API ready/);
  t.notMatch(moved.output(), 'API key', 'the credentials came with the data, so none are printed');
});

t.test('of two copies into one target, one completes and the other one stops', async (t) => {
  await twoAtOnce(t, { kind: 'file', path: join(temporaryFolder(t), 'target.sqlite') });
});

t.test('exits with 2 or 3 for wrong arguments, and names them', async (t) => {
  const { folder, path, from } = await oddSource(t, () => 1);
  const file = (name: string): string => `file:${join(folder, name)}`;
  for (const [args, code, message] of [
    [['db', 'copy', '--from', from], 2, /Missing required argument: to/],
    [['db', 'copy', '--from', from, '--to', from], 2, /name the same database/],
    [['db', 'copy', '--from', 'mysql://x', '--to', from], 2, /^--from: give file: and a path/],
    [['db', 'copy', '--from', file('none.sqlite'), '--to', file('t')], 3, /^cannot open .*none\.sqlite/],
    [['db', 'copy', '--from', 'file::memory:', '--to', file('t')], 1, /file::memory: ends with its process/],
    [['db', 'copy', '--from', from, '--to', 'file::memory:'], 1, /file::memory: ends with its process/],
    [
      ['db', 'copy', '--from', file('empty'), '--to', file('t')],
      1,
      /the source is not a database of the API/,
    ],
    [['db', 'copy', '--from', file('old'), '--to', file('t')], 1, /of an older version \(it lacks 010-/],
    [['db', 'copy', '--from', file('new'), '--to', file('t')], 1, /a newer version \(it has 999-next\)/],
    [['db', 'copy', '--from', from, '--to', file('new')], 1, /newer version \(it has 999-next\)/],
    [['db', 'backup', path, '--from', from], 2, /already exists; name a new file/],
    [['db', 'backup', join(folder, 'no/b'), '--from', from], 2, /no does not exist; create the folder first/],
    [['db', 'backup', join(folder, 'b'), '--from', file('none')], 3, /^cannot open .*none/],
    [['db'], 2, /Name a command: copy, verify or backup/],
    [['nothing'], 2, /Unknown (command|argument): nothing/],
  ] as const) {
    execute(join(folder, 'empty'), 'create table if not exists "t" ("a")');
    for (const [name, statement] of [
      ['old', `delete from "migrations" where "name" like '010-%'`],
      ['new', `insert into "migrations" values ('999-next', '')`],
    ] as const) {
      if (existsSync(join(folder, name))) continue;
      await (await openTarget({ kind: 'file', path: join(folder, name) })).close();
      execute(join(folder, name), statement);
    }
    const found = await apiCommand(args);
    t.equal(found.code, code, `${args.join(' ')}: ${found.stderr}`);
    t.match(found.stderr, message);
    t.equal(found.stdout, '');
  }
  t.notOk(existsSync(join(folder, 't')), 'no target is created');
});

t.test('a backup is complete, and exists whole or not at all', async (t) => {
  const { folder, path, from } = await oddSource(t);
  const file = join(folder, 'backup.sqlite');
  const { code, stdout } = await apiCommand(['db', 'backup', file, '--json', '--from', from]);
  t.equal(code, 0);
  t.match(JSON.parse(stdout), { file, bytes: Number });
  t.strictSame(differences(path, file), []);
  t.notOk(existsSync(`${file}.partial`));
});
