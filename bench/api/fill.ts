/**
 * Fills a database with responses, contacts and displays. A million responses would take an hour through the API, so
 * SQL statements create the rows. The rows look like those of the API. Their ids are scattered like random ones, so the
 * indexes look the same too.
 */
import type { Sql } from './sql.ts';

const tables = ['contacts', 'contactAttributes', 'displays', 'responses'];
const RESPONSES_PER_CONTACT = 4;

export interface FillPlan {
  readonly workspaceId: string;
  /** The first survey gets half of all responses. The others share the rest. */
  readonly surveyIds: readonly string[];
  /** Number of responses in the database after it is filled. */
  readonly responses: number;
}

interface Filled {
  readonly seconds: number;
  readonly bytes: number;
}

/** @param sql connection to a database that no other program has open */
export async function fill(sql: Sql, plan: FillPlan): Promise<Filled> {
  const began = performance.now();
  for (const statement of sql.before) await sql.run(statement);
  const count = async (table: string) => Number((await sql.column(`select count(*) from "${table}"`))[0]);
  const from = await count('responses');
  const known = await count('contacts');
  const contacts = known + Math.max(0, Math.ceil((plan.responses - from) / RESPONSES_PER_CONTACT));
  const { drop, create } = sql.indexes(tables);
  const restore = await sql.column(create);
  for (const statement of await sql.column(drop)) await sql.run(String(statement));
  await Promise.all([
    contacts > known ? insertContacts(sql, plan, known, contacts) : undefined,
    plan.responses > from ? insertResponses(sql, plan, from, contacts) : undefined,
  ]);
  for (const statement of restore) await sql.run(String(statement));
  for (const statement of sql.after) await sql.run(statement);
  const [bytes] = await sql.column(sql.bytes);
  return { seconds: (performance.now() - began) / 1000, bytes: Number(bytes) };
}

/** Returns SQL for the id of a row. It depends only on kind and number, so other rows can refer to it. */
function idOf(kind: string, number: string): string {
  return `'c' || substr(md5('${kind}' || ${number}), 1, 24)`;
}

async function insertContacts(sql: Sql, plan: FillPlan, from: number, until: number): Promise<void> {
  const [keyId] = await sql.column(`select "id" from "contactAttributeKeys" where "key" = 'userId'`);
  const at = sql.time('k * 4');
  const contacts = sql.series('k', from, until);
  await sql.run(
    `insert into "contacts" ("id", "createdAt", "updatedAt", "workspaceId", "userId")
     select ${idOf('contact', 'k')}, ${at}, ${at}, '${plan.workspaceId}', 'user-' || k from ${contacts}`,
  );
  await sql.run(
    `insert into "contactAttributes"
       ("id", "createdAt", "updatedAt", "contactId", "attributeKeyId", "value", "uniqueDigest")
     select ${idOf('attribute', 'k')}, ${at}, ${at}, ${idOf('contact', 'k')}, '${keyId}',
       'user-' || k, ${sql.digest(`'user-' || k`)}
     from ${contacts}`,
  );
}

async function insertResponses(sql: Sql, plan: FillPlan, from: number, contacts: number): Promise<void> {
  const { responses, surveyIds, workspaceId } = plan;
  const [first, ...others] = surveyIds;
  const branches = others.map((id, i) => `when ${i} then '${id}'`).join(' ');
  const survey = `case when i % 2 = 0 then '${first}' else case (i / 2) % ${others.length} ${branches} end end`;
  const contact = idOf('contact', `((i * 2654435761) % ${contacts})`);
  const at = sql.time('i');
  const rows = sql.series('i', from, responses);
  await sql.run(
    `insert into "displays" ("id", "createdAt", "updatedAt", "surveyId", "contactId")
     select ${idOf('display', 'i')}, ${at}, ${at}, ${survey}, ${contact} from ${rows}`,
  );
  await sql.run(
    `insert into "responses" ("id", "createdAt", "updatedAt", "workspaceId", "surveyId", "contactId", "displayId",
       "finished", "data", "variables", "ttc", "meta", "contactAttributes", "language")
     select ${idOf('response', 'i')}, ${at}, ${at}, '${workspaceId}', ${survey}, ${contact}, ${idOf('display', 'i')},
       case when i % 5 = 0 then 0 else 1 end,
       '{"q1":"An answer of some length, number ' || i || '","q2":' || i % 11 || '}', '{}',
       '{"q1":2300,"q2":900,"_total":3200}', '{"url":"https://shop.example/","source":"bench"}', '{}', 'default'
     from ${rows}`,
  );
}

export interface Sample {
  readonly responseIds: readonly string[];
  /** The user ids of contacts in the database. */
  readonly userIds: readonly string[];
}

/** Returns the ids of some rows, spread evenly over all ids. */
export async function sample(sql: Sql, size: number): Promise<Sample> {
  const column = async (name: string, table: string): Promise<readonly string[]> => {
    const found = new Set<string>();
    for (let i = 0; i < size; i++) {
      const from = `c${Math.floor((i * 0x100_000) / size)
        .toString(16)
        .padStart(5, '0')}`;
      const [value] = await sql.column(
        `select "${name}" from "${table}" where "id" >= '${from}' and "${name}" is not null order by "id" limit 1`,
      );
      if (value !== undefined) found.add(String(value));
    }
    return [...found];
  };
  return { responseIds: await column('id', 'responses'), userIds: await column('userId', 'contacts') };
}
