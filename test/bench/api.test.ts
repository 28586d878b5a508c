/** The bench of the API: what it is asked for, and the rows that it measures on. */
import { join } from 'node:path';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import type { Database } from '#api/db/schema.ts';
import { type FillPlan, fill, sample } from '#bench/api/fill.ts';
import { openSql } from '#bench/api/sql.ts';
import { UsageError } from '#bench/command.ts';
import { runCommand } from '#bench/program.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { openTestDatabase } from '#test/support/database.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const ROWS = 1_000;

/** Surveys and keys as the API makes them. */
async function prepare(t: Test, url: string): Promise<Omit<FillPlan, 'responses'>> {
  const api = await startApi(t, { env: { DATABASE_URL: url } });
  const surveyIds: string[] = [];
  for (let i = 0; i < 3; i++) surveyIds.push((await addSurvey(api)).id);
  await api.close();
  return { workspaceId, surveyIds };
}

async function indexesOf(db: Database, query: string): Promise<readonly unknown[]> {
  return (await sql.raw(query).execute(db)).rows;
}

async function check(t: Test, url: string, indexes: string): Promise<void> {
  const plan = await prepare(t, url);
  const db = openTestDatabase(url);
  const before = await indexesOf(db, indexes);
  await db.destroy();
  const own = openSql(url);
  await fill(own, { ...plan, responses: ROWS });
  const { bytes } = await fill(own, { ...plan, responses: 2 * ROWS });
  t.ok(bytes > 0);
  const { responseIds, userIds } = await sample(own, 100);
  t.ok(new Set(responseIds).size > 90);
  t.ok(new Set(userIds).size > 90);
  await own.close();
  const filled = openTestDatabase(url);
  const count = async (table: 'responses' | 'displays' | 'contacts' | 'contactAttributes') => {
    const { n } = await filled
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<number>().as('n'))
      .executeTakeFirstOrThrow();
    return n;
  };
  t.equal(await count('responses'), 2 * ROWS);
  t.equal(await count('displays'), 2 * ROWS);
  t.equal(await count('contacts'), ROWS / 2);
  t.equal(await count('contactAttributes'), ROWS / 2);
  const whole = await filled
    .selectFrom('responses')
    .innerJoin('contacts', 'contacts.id', 'responses.contactId')
    .innerJoin('displays', 'displays.id', 'responses.displayId')
    .innerJoin('surveys', 'surveys.id', 'responses.surveyId')
    .whereRef('displays.contactId', '=', 'responses.contactId')
    .whereRef('displays.surveyId', '=', 'responses.surveyId')
    .select('responses.id')
    .execute();
  t.equal(whole.length, 2 * ROWS, 'every reference has its row');
  t.strictSame(await indexesOf(filled, indexes), before, 'every index is restored');
  await filled.destroy();
}

t.test('fills a SQLite file with consistent rows, and restores its indexes', async (t) => {
  const path = join(temporaryFolder(t), 'floodgate.sqlite');
  const indexes = `select "name", "sql" from "sqlite_master" where "type" = 'index' order by "name"`;
  await check(t, `file:${path}`, indexes);
});

t.test('fills a PostgreSQL database with consistent rows, and restores its indexes', async (t) => {
  const { drop, url } = await createPostgresDatabase();
  t.teardown(drop);
  const indexes =
    'select indexname as name, indexdef as definition from pg_indexes where schemaname = current_schema() order by 1';
  await check(t, url, indexes);
});

t.test('reads options, and refuses wrong ones with a hint', async (t) => {
  const read = async (...argv: string[]): Promise<unknown> => {
    let found: unknown = null;
    await runCommand(argv, async (args) => {
      found = args;
    });
    return found;
  };
  t.match(await read('api'), { seconds: 4, workers: 2 });
  t.match(await read('api', '--database', 'postgres', '--rows', '1m,10k', '--only', 'load,create'), {
    database: ['postgres'],
    rows: ['10k', '1m'],
    only: ['create', 'load'],
  });
  t.match(await read(), { rounds: 7, duration: 3, quick: false }, 'without a command: compares peers');
  t.match(await read('soak', '--workers', '2'), { minutes: 20, workers: 2 });
  for (const [argv, message] of [
    ['api --database mysql', /does not know mysql; it knows sqlite, postgres/],
    ['api --rows 20m', /does not know 20m; it knows 10k, 1m, 10m/],
    ['api --only all', /it knows create/],
    ['api --workers 0', /from 1 to 16/],
    ['api --unknown', /unknown/],
    ['api 10000', /10000/],
    ['--only hot,cold', /does not know cold/],
    ['--rounds 4', /from 5 to 1000/],
    ['soak --minutes x', /a number from 1 to 1440/],
    ['soak --workers 9', /from 1 to 8/],
    ['profile', /Not enough/],
    ['attack', /attack/],
  ] as const) {
    await t.rejects(read(...argv.split(' ')), { constructor: UsageError, message }, argv);
  }
});
