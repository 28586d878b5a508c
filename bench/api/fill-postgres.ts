/**
 * The rows of fill.ts for PostgreSQL, made by the server itself: what does not travel takes no time on the way. Two
 * connections share the work, as most machines have two processors to give.
 */
import pg from 'pg';
import type { Filled, FillPlan, Sample } from './fill.ts';

const tables = ['contacts', 'contactAttributes', 'displays', 'responses'] as const;
type Table = (typeof tables)[number];

const at = (seconds: string): string =>
  `to_char(timestamp '2024-01-01' + ${seconds} * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS".000Z"')`;
/** As scattered as random ones, and known without a look at the row that has it. */
const idOf = (kind: string, number: string): string => `'c' || substr(md5('${kind}' || ${number}), 1, 24)`;
/** Whom response i is from, of $2 contacts. */
const contact = `((hashint8extended(i, 7) & 9223372036854775807) % $2)`;

export async function fillPostgres(url: string, plan: FillPlan): Promise<Filled> {
  const began = performance.now();
  const pool = new pg.Pool({
    connectionString: url,
    max: 2,
    // References are right by construction, and what a crash would lose is made anew.
    options: '-c session_replication_role=replica -c synchronous_commit=off',
  });
  try {
    const from = await count(pool, 'responses');
    const before = await count(pool, 'contacts');
    const contacts = before + Math.max(0, Math.ceil((plan.responses - from) / 4));
    const restore = await dropIndexes(pool);
    await Promise.all([
      insertContacts(pool, plan, before, contacts).then(() => insertDisplays(pool, plan, from, contacts)),
      insertResponses(pool, plan, from, contacts),
    ]);
    // One after the other: the server takes several processes for each.
    for (const statement of restore) await pool.query(statement);
    for (const table of tables) await pool.query(`vacuum analyze "${table}"`);
    await pool.query('checkpoint');
    const { rows } = await pool.query('select pg_database_size(current_database()) as bytes');
    return { seconds: (performance.now() - began) / 1000, bytes: Number(rows[0]?.bytes) };
  } finally {
    await pool.end();
  }
}

async function insertContacts(
  pool: pg.Pool,
  { attributeKeyId, workspaceId }: FillPlan,
  before: number,
  after: number,
): Promise<void> {
  await pool.query(
    `insert into "contacts" ("id", "createdAt", "updatedAt", "workspaceId", "userId")
     select ${idOf('contact', 'k')}, ${at('k * 4')}, ${at('k * 4')}, $3, 'user-' || k
     from generate_series($1::bigint, $2::bigint - 1) as k`,
    [before, after, workspaceId],
  );
  await pool.query(
    `insert into "contactAttributes"
       ("id", "createdAt", "updatedAt", "contactId", "attributeKeyId", "value", "uniqueDigest")
     select ${idOf('attribute', 'k')}, ${at('k * 4')}, ${at('k * 4')}, ${idOf('contact', 'k')}, $3, 'user-' || k,
       rtrim(translate(encode(sha256(convert_to('user-' || k, 'UTF8')), 'base64'), '+/', '-_'), '=')
     from generate_series($1::bigint, $2::bigint - 1) as k`,
    [before, after, attributeKeyId],
  );
}

/** Half of all are of the first survey. */
const survey = `($3::text[])[case when i % 2 = 0 then 1 else 2 + (i / 2) % (cardinality($3::text[]) - 1) end]`;

async function insertDisplays(
  pool: pg.Pool,
  { responses, surveyIds }: FillPlan,
  from: number,
  contacts: number,
): Promise<void> {
  await pool.query(
    `insert into "displays" ("id", "createdAt", "updatedAt", "surveyId", "contactId")
     select ${idOf('display', 'i')}, ${at('i')}, ${at('i')}, ${survey}, ${idOf('contact', contact)}
     from generate_series($1::bigint, $4::bigint - 1) as i, (select $2::bigint) as "all"`,
    [from, contacts, surveyIds, responses],
  );
}

async function insertResponses(
  pool: pg.Pool,
  { responses, surveyIds, workspaceId }: FillPlan,
  from: number,
  contacts: number,
): Promise<void> {
  await pool.query(
    `insert into "responses" ("id", "createdAt", "updatedAt", "workspaceId", "surveyId", "contactId", "displayId",
       "finished", "data", "variables", "ttc", "meta", "contactAttributes", "language")
     select ${idOf('response', 'i')}, ${at('i')}, ${at('i')}, $5, ${survey}, ${idOf('contact', contact)},
       ${idOf('display', 'i')}, case when i % 5 = 0 then 0 else 1 end,
       '{"q1":"An answer of some length, number ' || i || '","q2":' || i % 11 || '}', '{}',
       '{"q1":2300,"q2":900,"_total":3200}', '{"url":"https://shop.example/","source":"bench"}', '{}', 'default'
     from generate_series($1::bigint, $4::bigint - 1) as i, (select $2::bigint) as "all"`,
    [from, contacts, surveyIds, responses, workspaceId],
  );
}

/** All but those of primary keys, which others refer to. @returns the statements that bring them back */
async function dropIndexes(pool: pg.Pool): Promise<readonly string[]> {
  const names = tables.map((table) => `'"${table}"'::regclass`).join(', ');
  const constraints = await pool.query<{ drop: string; add: string }>(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as "drop",
       format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as "add"
     from pg_constraint where contype = 'u' and conrelid in (${names})`,
  );
  const indexes = await pool.query<{ drop: string; add: string }>(
    `select format('drop index %s', indexrelid::regclass) as "drop", pg_get_indexdef(indexrelid) as "add"
     from pg_index where indrelid in (${names})
       and not exists (select 1 from pg_constraint where conindid = indexrelid)`,
  );
  const all = [...constraints.rows, ...indexes.rows];
  for (const { drop } of all) await pool.query(drop);
  return all.map(({ add }) => add);
}

export async function samplePostgres(url: string, size: number): Promise<Sample> {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const column = async (name: 'id' | 'userId', table: Table): Promise<readonly string[]> => {
    const percent = Math.min(100, (200 * size) / Math.max(1, await count(pool, table)));
    const { rows } = await pool.query<{ value: string }>(
      `select "${name}" as value from "${table}" tablesample bernoulli (${percent}) limit ${size}`,
    );
    return rows.map(({ value }) => value);
  };
  try {
    return { responseIds: await column('id', 'responses'), userIds: await column('userId', 'contacts') };
  } finally {
    await pool.end();
  }
}

async function count(pool: pg.Pool, table: Table): Promise<number> {
  const { rows } = await pool.query<{ n: string }>(`select count(*) as n from "${table}"`);
  return Number(rows[0]?.n);
}
