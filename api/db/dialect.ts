/**
 * Everything in which the two databases differ for those who write queries and migrations. Tables, queries and migrations
 * are the same for both; what stands here makes them so.
 *
 * Text is compared and sorted by its bytes, as SQLite does: `collate "C"`. Whole numbers have 64 bits. An entry of an index
 * may have 2,704 bytes in PostgreSQL, so what may be longer is indexed there by a digest: of 64 bits where it is only looked
 * for, SHA-256 where it is unique.
 */
import { type Kysely, PostgresAdapter, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from './schema.ts';

export function isPostgres(db: Kysely<Database>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Columns that stand in an index and may hold more than 600 characters. */
const longTexts: Readonly<Record<string, readonly string[]>> = {
  actionClasses: ['key'],
  contactAttributes: ['value'],
  responses: ['singleUseId'],
};

/** @param statement one of a migration, as SQLite reads it @returns what PostgreSQL reads instead */
export function forPostgres(statement: string): readonly string[] {
  const typed = statement
    .replaceAll(/("\w+") text\b/g, '$1 text collate "C"')
    .replaceAll(/("\w+") integer\b/g, '$1 bigint');
  const [, kind, table = ''] = /^\s*create (table|(?:unique )?index "\w+" on) "(\w+)"/.exec(typed) ?? [];
  const columns = longTexts[table] ?? [];
  const indexed = (list: string): string =>
    list.replaceAll(/"(\w+)"/g, (name, column: string) => (columns.includes(column) ? digestOf(name) : name));
  if (kind !== 'table') return [kind === undefined ? typed : typed.replace(/\(.*?\)/s, indexed)];
  // A constraint has columns only; an index has expressions as well.
  const indexes: string[] = [];
  const withoutThem = typed.replaceAll(/,\s*unique \((.*?)\)/g, (clause, list: string) => {
    if (indexed(list) === list) return clause;
    indexes.push(`create unique index on "${table}" (${indexed(list)})`);
    return '';
  });
  return [withoutThem, ...indexes];
}

function digestOf(column: string): string {
  return `hashtextextended(${column}, 0)`;
}

/** Indexes over such digests, which the server does not tell by their columns: 021-digests made them. */
export const uniqueDigests: Readonly<Record<string, readonly [owner: string, text: string]>> = {
  actionClasses_key: ['actionClasses.workspaceId', 'actionClasses.key'],
  responses_singleUseId: ['responses.surveyId', 'responses.singleUseId'],
};
const uniqueTexts = new Set(Object.values(uniqueDigests).map(([, text]) => text));

/**
 * Does the column, one of those above, hold one of these texts? Reads the index on either database.
 *
 * @param column `table.column`
 */
export function isOneOf(
  db: Kysely<Database>,
  column: `${string}.${string}`,
  texts: readonly string[],
): RawBuilder<SqlBool> {
  if (texts.length === 0) return sql<SqlBool>`1 = 0`;
  const ref = sql.ref(column);
  const same =
    texts.length === 1 ? sql<SqlBool>`${ref} = ${texts[0]}` : sql<SqlBool>`${ref} in (${sql.join(texts)})`;
  if (!isPostgres(db)) return same;
  const digest = uniqueTexts.has(column)
    ? (text: RawBuilder<unknown>) => sql`sha256(replace(${text}, '\\', '\\\\')::bytea)`
    : (text: RawBuilder<unknown>) => sql`hashtextextended(${text}, 0)`;
  const digests = sql.join(texts.map((text) => digest(sql`${text}`)));
  return sql<SqlBool>`(${digest(ref)} in (${digests}) and ${same})`;
}

/**
 * Text that is another one after every change of the survey, whoever makes it, and also one by hand: for a query on
 * `surveys`. PostgreSQL knows which transaction wrote a row. SQLite's triggers number the changes of all that states are
 * made of, so there it is another one too after a change of something else.
 */
export function surveyVersion(db: Kysely<Database>): RawBuilder<string> {
  if (isPostgres(db)) return sql<string>`${sql.ref('surveys.xmin')}::text`;
  return sql<string>`cast(coalesce((select max("id") from "stateChanges"), 0) as text)`;
}

/** Of the rows of a query: JSON text of one object, in the order of its keys. Without rows there is `{}` or null. */
export function jsonObject(
  db: Kysely<Database>,
  key: RawBuilder<unknown>,
  value: RawBuilder<unknown>,
): RawBuilder<string | null> {
  return isPostgres(db)
    ? sql`json_object_agg(${key}, ${value} order by ${key})::text`
    : sql`json_group_object(${key}, ${value} order by ${key})`;
}

/** Is there a table of this name, where unqualified names are looked up? */
export async function hasTable(db: Kysely<Database>, name: string): Promise<boolean> {
  const query = isPostgres(db)
    ? sql<{ name: string | null }>`select to_regclass(quote_ident(${name}))::text as "name"`
    : sql<{ name: string | null }>`select name from sqlite_master where type = 'table' and name = ${name}`;
  const { rows } = await query.execute(db);
  return rows.some((row) => row.name !== null);
}
