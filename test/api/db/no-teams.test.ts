/** A database with teams starts without them, keeps a copy of them, and the log says what happened. */
import { existsSync } from 'node:fs';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { forPostgres } from '#api/db/dialect.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { migrate } from '#api/db/migrate.ts';
import { migrations } from '#api/db/migrations/index.ts';
import type { Database } from '#api/db/schema.ts';
import { isOnPostgres, openTestDatabase, sharedDatabase } from '#test/support/database.ts';

const at = '2026-01-01T00:00:00.000Z';
const tables = ['invites', 'teamMembers', 'teamWorkspaces', 'teams'];

/** Opens a database as the version before migration 029 left it. */
async function older(t: Test): Promise<{ readonly db: Database; readonly url: string }> {
  const url = await sharedDatabase(t, 'empty');
  const db = openTestDatabase(url);
  t.teardown(() => db.destroy());
  await sql`create table "migrations" ("name" text primary key, "timestamp" text not null)`.execute(db);
  for (const { name, statements, only } of migrations.filter(({ name }) => name < '029')) {
    const all = isOnPostgres
      ? [...statements.flatMap(forPostgres), ...(only?.postgres ?? [])]
      : [...statements, ...(only?.sqlite ?? [])];
    for (const statement of all) await sql.raw(statement).execute(db);
    await sql`insert into "migrations" values (${name}, ${at})`.execute(db);
  }
  return { db, url };
}

async function addPeople(db: Database): Promise<void> {
  const row = { createdAt: at, updatedAt: at };
  await db
    .insertInto('organizations')
    .values({ ...row, id: 'org', name: 'Org', isOperators: 1 })
    .execute();
  for (const [id, role] of [
    ['ada', 'owner'],
    ['ben', 'member'],
    ['cleo', 'member'],
  ] as const) {
    await db
      .insertInto('users')
      .values({
        ...{
          ...row,
          id,
          name: id,
          email: `${id}@example.com`,
          emailVerified: at,
          passwordHash: null,
          isActive: 1,
        },
        ...{ identityProvider: 'email', notificationSettings: '{}', locale: 'en-US' },
        lastLoginAt: null,
      })
      .execute();
    await db
      .insertInto('memberships')
      .values({ organizationId: 'org', userId: id, role, createdAt: at })
      .execute();
  }
  await sql`insert into "teams" values ('team', ${at}, ${at}, 'org', 'Support')`.execute(db);
  for (const id of ['ben', 'cleo']) {
    await sql`insert into "teamMembers" values ('team', ${id}, 'contributor', ${at})`.execute(db);
  }
}

async function existing(db: Database): Promise<readonly string[]> {
  return (await db.introspection.getTables()).map(({ name }) => name);
}

t.test('empty tables are dropped without a word and without a copy', async (t) => {
  const { db, url } = await older(t);
  const told: string[] = [];
  await migrate(db, (sentence) => told.push(sentence));
  t.strictSame(told, []);
  const left = await existing(db);
  for (const table of tables) t.notOk(left.includes(table), table);
  const location = parseDatabaseUrl(url, '/');
  if (location.kind === 'file') t.notOk(existsSync(`${location.path}.before-029-no-teams`));
});

t.test('tables with rows: the log names them and counts the members, and the rows are kept', async (t) => {
  const { db, url } = await older(t);
  await addPeople(db);
  const told: string[] = [];
  await migrate(db, (sentence) => told.push(sentence));
  t.equal(told.length, 2, told.join('\n'));
  t.match(told, [/teamMembers \(2 rows\), teams \(1 row\)/, /role member.*: 2\. .*people -- add/]);
  const left = await existing(db);
  for (const table of tables) t.notOk(left.includes(table), table);
  const location = parseDatabaseUrl(url, '/');
  const kept =
    location.kind === 'file' ? openTestDatabase(`file:${location.path}.before-029-no-teams`) : null;
  if (kept !== null) t.teardown(() => kept.destroy());
  const names = await sql`select "name" from ${sql.table(kept === null ? 'removed_teams' : 'teams')}`.execute(
    kept ?? db,
  );
  t.strictSame(names.rows, [{ name: 'Support' }]);
  const again: string[] = [];
  t.strictSame(await migrate(db, (sentence) => again.push(sentence)), []);
  t.strictSame(again, [], 'and only once');
});
