/** The list of copied tables is computed from the schema, so a new table is copied automatically. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { NOT_COPIED, readShape } from '#api/db/copy/shape.ts';
import { migrations } from '#api/db/migrations/index.ts';
import { projectRoot } from '#test/support/process.ts';

t.test('lists every table of the schema', async (t) => {
  const { tables } = await readShape();
  const text = readFileSync(join(projectRoot, 'api/db/schema.ts'), 'utf8');
  const [, body = ''] = /export interface Tables \{\n([^}]*)\}/.exec(text) ?? [];
  const named = [...body.matchAll(/^ {2}(\w+): \w+;$/gm)].map(([, name = '']) => name);
  t.ok(named.length > 30);
  t.strictSame(
    tables.map(({ name }) => name).sort(),
    named.filter((name) => !NOT_COPIED.includes(name)).sort(),
  );
});

t.test('lists every column, and a key to read by', async (t) => {
  const { tables, migrations: names } = await readShape();
  t.strictSame(
    names,
    migrations.map(({ name }) => name),
  );
  const byName = new Map(tables.map((table) => [table.name, table]));
  t.match(byName.get('files')?.columns, ['key', 'workspaceId', 'access', 'surveyId', 'responseId', 'size']);
  t.ok(byName.get('files')?.columns.includes('claimedAt'), 'a column of a later migration is listed');
  t.strictSame(byName.get('deliveryAttempts')?.key, ['deliveryId', 'number']);
  t.strictSame(byName.get('secrets')?.key, ['name']);
  for (const { name, key } of tables) t.ok(key.length > 0, name);
});

t.test('no key is an auto-increment, because its counter would have to be copied too', async (t) => {
  for (const { name, key, texts } of (await readShape()).tables) {
    const isCounted = key.length === 1 && !texts.includes(key[0] ?? '');
    t.notOk(isCounted, `${name}: set the counter of ${key[0]} after the copy, in api/db/copy/copy.ts`);
  }
});

t.test('a table comes after the tables that it refers to', async (t) => {
  const names = (await readShape()).tables.map(({ name }) => name);
  for (const [before, after] of [
    ['organizations', 'workspaces'],
    ['segments', 'surveys'],
    ['surveys', 'responses'],
    ['displays', 'responses'],
    ['responses', 'responseTags'],
    ['deliveries', 'deliveryAttempts'],
  ] as const) {
    t.ok(names.indexOf(before) >= 0 && names.indexOf(before) < names.indexOf(after), `${before}, ${after}`);
  }
});

t.test('knows the rows that migrations write', async (t) => {
  const { tables } = await readShape();
  const seeded = tables.filter(({ seed }) => seed.rows > 0).map(({ name, seed }) => [name, seed.rows]);
  t.strictSame(seeded, [['storageUsage', 1]]);
});
