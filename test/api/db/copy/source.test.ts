/** The list of copied tables is read from the database, so a new table is copied automatically. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readBatches, readTables } from '#api/db/copy/source.ts';
import { openAlone } from '#api/db/sqlite-snapshot.ts';
import { projectRoot } from '#test/support/process.ts';
import { execute, oddSource } from './copies.ts';

t.test('lists every table of the schema with its key', async (t) => {
  const { path } = await oddSource(t, () => 1);
  const sqlite = openAlone(path);
  t.teardown(() => sqlite.close());
  const tables = readTables(sqlite);
  const text = readFileSync(join(projectRoot, 'api/db/schema.ts'), 'utf8');
  const [, body = ''] = /export interface Tables \{\n([^}]*)\}/.exec(text) ?? [];
  const named = [...body.matchAll(/^ {2}(\w+): \w+;$/gm)].map(([, name = '']) => name);
  const names = tables.map(({ name }) => name);
  t.ok(named.length > 30);
  t.strictSame(
    names.filter((name) => !name.startsWith('migrations')).sort(),
    named.filter((name) => !name.startsWith('migrations')).sort(),
  );
  const byName = new Map(tables.map((table) => [table.name, table]));
  t.strictSame(byName.get('deliveryAttempts')?.key, ['deliveryId', 'number']);
  t.ok(byName.get('files')?.columns.includes('claimedAt'), 'a column of a later migration is listed');
  for (const [before, after] of [
    ['organizations', 'workspaces'],
    ['segments', 'surveys'],
    ['surveys', 'responses'],
    ['displays', 'responses'],
    ['deliveries', 'deliveryAttempts'],
  ] as const) {
    t.ok(names.indexOf(before) >= 0 && names.indexOf(before) < names.indexOf(after), `${before}, ${after}`);
  }
});

t.test('no copied key is an auto-increment, because its counter would have to be copied too', async (t) => {
  const { path } = await oddSource(t, () => 1);
  const sqlite = openAlone(path);
  t.teardown(() => sqlite.close());
  const counted = sqlite
    .prepare(`select "name" from sqlite_master where "type" = 'table' and "sql" like '%autoincrement%'`)
    .pluck()
    .all();
  t.strictSame(
    counted.filter((name) => name !== 'stateChanges'),
    [],
  );
});

t.test('a batch has at most 64 rows, and one row if they are long', async (t) => {
  const { path } = await oddSource(t, (table) => (table === 'organizations' ? 130 : 0));
  execute(path, `update "organizations" set "name" = printf('%.*c', 3000000, 'x') where "rowid" < 3`);
  const sqlite = openAlone(path);
  t.teardown(() => sqlite.close());
  const [table] = readTables(sqlite).filter(({ name }) => name === 'organizations');
  if (table === undefined) throw new Error('There is no such table');
  t.strictSame(
    Array.from(readBatches(sqlite, table), (rows) => rows.length),
    [1, 64, 64, 1],
  );
});
