/** Queries rely on these properties of both SQLite and PostgreSQL. */
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { migrate } from '#api/db/migrate.ts';
import type { Database } from '#api/db/schema.ts';
import { isUniqueViolation } from '#api/db/taken.ts';
import { RESPONSE_ID_LENGTH_MAX } from '#api/values/content-limits.ts';
import { column } from '#test/support/column.ts';
import { openPrivateDatabase } from '#test/support/database.ts';

const now = '2026-01-01T00:00:00.000Z';

async function open(t: Test): Promise<Database> {
  const db = await openPrivateDatabase(t);
  await migrate(db);
  await db
    .insertInto('organizations')
    .values({ id: 'o1', createdAt: now, updatedAt: now, name: 'O', isOperators: 0 })
    .execute();
  return db;
}

async function addWorkspace(db: Database): Promise<void> {
  await db
    .insertInto('workspaces')
    .values({
      ...{ id: 'ws1', createdAt: now, updatedAt: now, organizationId: 'o1', name: 'W' },
      ...{ appSetupCompleted: 0, websiteSetupCompleted: 0, recontactDays: 7 },
      ...{ clickOutsideClose: 1, overlay: 'none', placement: 'x', inAppSurveyBranding: 0, styling: '{}' },
    })
    .execute();
}

const insertSecrets = (db: Database, names: readonly string[]) =>
  db
    .insertInto('secrets')
    .values(names.map((name) => ({ name, value: '', createdAt: now })))
    .execute();
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

t.test('sorts and compares text by its bytes', async (t) => {
  const db = await open(t);
  const names = ['', 'B', 'a', 'A b', 'Ab', 'é', 'e\u0301', 'ß', 'Z', '10', '9', '\u{1F600}', '\uFFFD', ' x'];
  await insertSecrets(db, names);
  const sorted = await db.selectFrom('secrets').select('name').orderBy('name').execute();
  t.strictSame(
    column(sorted, 'name'),
    names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
  );
  const after = await db
    .selectFrom('secrets')
    .select('name')
    .where('name', '>', 'Z')
    .orderBy('name')
    .execute();
  t.notOk(
    after.some(({ name }) => name === 'B'),
    'comparisons go by bytes too',
  );
});

t.test('numbers, counts, sums and booleans are the same on both databases', async (t) => {
  const db = await open(t);
  const large = Number.MAX_SAFE_INTEGER - 1;
  await addWorkspace(db);
  const file = { workspaceId: 'ws1', access: 'public', createdAt: now } as const;
  await db
    .insertInto('files')
    .values([
      { ...file, key: 'a', size: large },
      { ...file, key: 'b', size: -5 },
    ])
    .execute();
  const read = await db.selectFrom('files').selectAll().orderBy('key').execute();
  t.strictSame(column(read, 'size'), [large, -5]);
  const sums = await db
    .selectFrom('files')
    .select((select) => [
      select.fn.sum<number>('size').as('sum'),
      select.fn.countAll<number>().as('count'),
      select.fn.max('size').as('max'),
      sql<number>`"size" > 0`.as('isPositive'),
    ])
    .where('key', '=', 'a')
    .groupBy('size')
    .executeTakeFirstOrThrow();
  t.strictSame({ ...sums }, { sum: large, count: 1, max: large, isPositive: 1 });
  const { numUpdatedRows } = await db.updateTable('files').set({ size: 1 }).executeTakeFirst();
  t.equal(numUpdatedRows, 2n);
  t.strictSame(await db.selectFrom('secrets').selectAll().where('name', 'in', []).execute(), []);
});

t.test('returns text as it was stored', async (t) => {
  const db = await open(t);
  const values = ['', ' ', "it's", '\\x41', '"', '\u0001\t\r\n', '{"a":"\\u0000"}', '\u{10FFFF}', '$1', '?'];
  values.push('x'.repeat(1_000_000));
  await db
    .insertInto('secrets')
    .values(values.map((value, i) => ({ name: String(i).padStart(2, '0'), value, createdAt: now })))
    .execute();
  const read = await db.selectFrom('secrets').select('value').orderBy('name').execute();
  t.strictSame(column(read, 'value'), values);
});

t.test('a refused row names the index that refused it', async (t) => {
  const db = await open(t);
  await addWorkspace(db);
  const language = { createdAt: now, updatedAt: now, workspaceId: 'ws1', code: 'a)=(b, "c', alias: null };
  const insertLanguage = (id: string, fields: object = {}) =>
    db
      .insertInto('languages')
      .values({ ...language, id, ...fields })
      .execute();
  await insertLanguage('l1');
  const twice = await failure(insertLanguage('l2'));
  t.ok(isUniqueViolation(twice, 'languages.workspaceId', 'languages.code'));
  t.notOk(isUniqueViolation(twice, 'languages.code'));
  t.notOk(isUniqueViolation(twice, 'languages.code', 'languages.workspaceId'));
  const noParent = await failure(insertLanguage('l3', { workspaceId: 'no' }));
  t.ok(noParent instanceof Error);
  t.notOk(isUniqueViolation(noParent));
});

t.test('the longest unique text that a response may have fits an index', async (t) => {
  const db = await open(t);
  await addWorkspace(db);
  // An index cannot compress this text, and each character takes three bytes.
  const key = Array.from({ length: RESPONSE_ID_LENGTH_MAX }, (_, i) =>
    String.fromCodePoint(0x1000 + ((i * 7919) % 40_000)),
  ).join('');
  const row = { createdAt: now, updatedAt: now, workspaceId: 'ws1', description: null, noCodeConfig: null };
  const add = (id: string) =>
    db
      .insertInto('actionClasses')
      .values({ ...row, id, name: id, type: 'code', key })
      .execute();
  await add('a1');
  const twice = await failure(add('a2'));
  t.ok(isUniqueViolation(twice, 'actionClasses.workspaceId', 'actionClasses.key'), String(twice));
});

t.test('rolls a failed transaction back, and the next one succeeds', async (t) => {
  const db = await open(t);
  await t.rejects(
    db.transaction().execute(async (trx) => {
      await insertSecrets(trx, ['a']);
      throw new Error('no');
    }),
    /no/,
  );
  await t.rejects(db.transaction().execute((trx) => insertSecrets(trx, ['b', 'b'])));
  await db.transaction().execute((trx) => insertSecrets(trx, ['c']));
  const rows = await db.selectFrom('secrets').select('name').execute();
  t.strictSame(column(rows, 'name'), ['c']);
});
