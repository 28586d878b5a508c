/** Several contacts of this database have a value that must be unique. */
import { sql } from 'kysely';
import t from 'tap';
import { isUniqueViolation, openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import { fillUniqueValues } from '#api/db/unique-values.ts';
import { UNIQUE_VALUE, upsertContactAttributes } from '#api/resources/contacts/attribute-store.ts';
import { countingRandom } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';

t.test('the oldest contact has the unique value, and the others keep a copy', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  await migrate(db);
  await sql`pragma foreign_keys = off`.execute(db);
  const keys = {
    workspaceId: 'w',
    name: '',
    description: '',
    type: 'default',
    dataType: 'string',
  } as const;
  const at = '2026-01-01T00:00:00.000Z';
  for (const [id, isUnique] of [
    ['email', 1],
    ['plan', 0],
  ] as const) {
    await db
      .insertInto('contactAttributeKeys')
      .values({ ...keys, id, key: id, isUnique, isArchived: 0, createdAt: at, updatedAt: at })
      .execute();
  }
  const rows = [
    ['a', 'younger', 'email', 'both@example.com', '2026-02-01T00:00:00.000Z'],
    ['b', 'older', 'email', 'both@example.com', at],
    ['c', 'third', 'email', 'third@example.com', at],
    ['d', 'older', 'plan', 'pro', at],
    ['e', 'younger', 'plan', 'pro', at],
  ] as const;
  for (const [id, contactId, attributeKeyId, value, createdAt] of rows) {
    await db
      .insertInto('contactAttributes')
      .values({ id, contactId, attributeKeyId, value, createdAt, updatedAt: at, uniqueDigest: null })
      .execute();
  }
  await fillUniqueValues(db);
  const stored = await db.selectFrom('contactAttributes').selectAll().orderBy('id').execute();
  t.strictSame(
    stored.map(({ uniqueDigest }) => uniqueDigest !== null),
    [false, true, true, false, false],
  );
  t.strictSame(
    column(stored, 'value'),
    rows.map(([, , , value]) => value),
    'every contact keeps its value',
  );
  const one = { contactId: 'fourth', attributeKeyId: 'email', isUnique: true };
  const write = (value: string) =>
    upsertContactAttributes(db, [{ ...one, value }], at, countingRandom('unique values'));
  const error = await write('both@example.com').catch((reason: unknown) => reason);
  t.ok(isUniqueViolation(error, ...UNIQUE_VALUE), String(error));
  await write('fourth@example.com');
});

t.test('fills more values than one page', async (t) => {
  const db = openDatabase({ kind: 'memory' });
  t.teardown(() => db.destroy());
  await migrate(db);
  await sql`pragma foreign_keys = off`.execute(db);
  await sql`insert into "contactAttributeKeys"
    select 'email', '', '', 'w', 'email', '', '', 1, 'default', 'string', 0`.execute(db);
  await sql`insert into "contactAttributes" ("id", "createdAt", "updatedAt", "contactId", "attributeKeyId", "value")
    with recursive n (i) as (select 1 union all select i + 1 from n where i < 2500)
    select i, '', '', i, 'email', 'user' || i from n`.execute(db);
  await fillUniqueValues(db);
  const { rows } = await sql<{ count: number }>`select count(distinct "uniqueDigest") as "count"
    from "contactAttributes"`.execute(db);
  t.strictSame(rows, [{ count: 2500 }]);
});
