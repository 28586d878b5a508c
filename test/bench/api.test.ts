/** The bench of the API: what it is asked for, and the rows that it measures on. */
import { join } from 'node:path';
import { type Kysely, sql } from 'kysely';
import t, { type Test } from 'tap';
import type { Database } from '#api/db/schema.ts';
import { type Filled, type FillPlan, fill, sample } from '#bench/api/fill.ts';
import { fillPostgres, samplePostgres } from '#bench/api/fill-postgres.ts';
import { readOptions, UsageError } from '#bench/api/options.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { openTestDatabase } from '#test/support/database.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const ROWS = 1_000;

/** Surveys and keys as the API makes them. */
async function prepare(url: string): Promise<Omit<FillPlan, 'responses'>> {
  const api = await startApi({ env: { DATABASE_URL: url } });
  const surveyIds: string[] = [];
  for (let i = 0; i < 3; i++) surveyIds.push((await addSurvey(api)).id);
  const { id } = await api.context.db
    .selectFrom('contactAttributeKeys')
    .select('id')
    .where('key', '=', 'userId')
    .executeTakeFirstOrThrow();
  await api.close();
  return { workspaceId, surveyIds, attributeKeyId: id };
}

async function indexesOf(db: Kysely<Database>, query: string): Promise<readonly unknown[]> {
  return (await sql.raw(query).execute(db)).rows;
}

async function check(
  t: Test,
  url: string,
  indexes: string,
  fillWith: (plan: FillPlan) => Promise<Filled>,
): Promise<void> {
  const plan = await prepare(url);
  const db = openTestDatabase(url);
  const before = await indexesOf(db, indexes);
  await db.destroy();
  await fillWith({ ...plan, responses: ROWS });
  const { bytes } = await fillWith({ ...plan, responses: 2 * ROWS });
  t.ok(bytes > 0);
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
  t.equal(whole.length, 2 * ROWS, 'references lead somewhere');
  t.strictSame(await indexesOf(filled, indexes), before, 'every index is back');
  await filled.destroy();
}

t.test('a filled SQLite file', async (t) => {
  const path = join(temporaryFolder(t), 'floodgate.sqlite');
  const indexes = `select "name", "sql" from "sqlite_master" where "type" = 'index' order by "name"`;
  await check(t, `file:${path}`, indexes, async (plan) => fill({ ...plan, path }));
  const { responseIds, userIds } = sample(path, 100);
  t.equal(new Set(responseIds).size, 100);
  t.equal(new Set(userIds).size, 100);
});

t.test('a filled database of PostgreSQL', async (t) => {
  const { drop, url } = await createPostgresDatabase();
  t.teardown(drop);
  const indexes =
    'select indexname as name, indexdef as definition from pg_indexes where schemaname = current_schema() order by 1';
  await check(t, url, indexes, (plan) => fillPostgres(url, plan));
  const { responseIds, userIds } = await samplePostgres(url, 100);
  t.equal(new Set(responseIds).size, 100);
  t.ok(new Set(userIds).size >= 50);
});

t.test('options', (t) => {
  t.match(readOptions([]), { databases: ['sqlite', 'postgres'], rows: [10_000, 1_000_000], workers: 2 });
  t.match(readOptions(['--database', 'postgres', '--rows', '1m,10k,10000', '--only', 'load,create']), {
    databases: ['postgres'],
    rows: [10_000, 1_000_000],
    only: ['create', 'load'],
  });
  t.equal(readOptions(['--help']), null);
  for (const [argv, message] of [
    [['--database', 'mysql'], /does not know mysql; it knows sqlite, postgres/],
    [['--rows', '10'], /give numbers from 10k to 10m/],
    [['--rows', '20m'], /give numbers/],
    [['--only', 'all'], /it knows create/],
    [['--workers', '0'], /from 1 to 16/],
    [['--unknown'], /--unknown/],
    [['10000'], /10000/],
  ] as const) {
    t.throws(() => readOptions(argv), { constructor: UsageError, message });
  }
  t.end();
});
