/**
 * Everything in which SQLite and PostgreSQL differ for queries and migrations. Tables, queries and migrations are
 * written once; this file adapts them.
 *
 * Text is compared and sorted by bytes, as in SQLite (`collate "C"`), and integers have 64 bits. PostgreSQL limits
 * index entries to 2,704 bytes, so columns with longer text are indexed by a digest: 64 bits for lookups, SHA-256 if
 * unique.
 */
import { PostgresAdapter, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from './schema.ts';

export function isPostgres(db: Database): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Indexed columns that may hold more than 600 characters. */
const longTexts: Readonly<Record<string, readonly string[]>> = {
  actionClasses: ['key'],
  contactAttributes: ['value'],
  responses: ['singleUseId'],
};

/** Translates a statement of a migration from SQLite to PostgreSQL. */
export function forPostgres(statement: string): readonly string[] {
  const typed = statement
    .replaceAll(/("\w+") text\b/g, '$1 text collate "C"')
    .replaceAll(/("\w+") integer\b/g, '$1 bigint');
  const [, kind, table = ''] = /^\s*create (table|(?:unique )?index "\w+" on) "(\w+)"/.exec(typed) ?? [];
  const columns = longTexts[table] ?? [];
  const indexed = (list: string): string =>
    list.replaceAll(/"(\w+)"/g, (name, column: string) => (columns.includes(column) ? digestOf(name) : name));
  if (kind !== 'table') return [kind === undefined ? typed : typed.replace(/\(.*?\)/s, indexed)];
  // A constraint can only name columns; an index can have expressions.
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

/** Unique indexes over digests (migration 021). PostgreSQL's error does not name their columns, so they are listed. */
export const uniqueDigests: Readonly<Record<string, readonly [owner: string, text: string]>> = {
  actionClasses_key: ['actionClasses.workspaceId', 'actionClasses.key'],
  responses_singleUseId: ['responses.surveyId', 'responses.singleUseId'],
};

/**
 * Whether the column, one of `longTexts`, holds this text. Uses the index in both databases, unless it is a unique one.
 *
 * @param column `table.column`
 */
export function isText(db: Database, column: `${string}.${string}`, text: string): RawBuilder<SqlBool> {
  const ref = sql.ref(column);
  if (!isPostgres(db)) return sql<SqlBool>`${ref} = ${text}`;
  return sql<SqlBool>`(hashtextextended(${ref}, 0) = hashtextextended(${text}, 0) and ${ref} = ${text})`;
}

/**
 * Returns SQL for a text that differs after each change of a survey, also after manual changes in the database. For
 * queries on `surveys`. PostgreSQL stores the writing transaction of each row. In SQLite triggers number all changes,
 * so the text may also differ after a change of another row.
 */
export function surveyVersion(db: Database): RawBuilder<string> {
  if (isPostgres(db)) return sql<string>`${sql.ref('surveys.xmin')}::text`;
  return sql<string>`cast(coalesce((select max("id") from "stateChanges"), 0) as text)`;
}

/** Aggregates rows to one JSON object in text form, in the order of its keys; `{}` or null without rows. */
export function jsonObject(
  db: Database,
  key: RawBuilder<unknown>,
  value: RawBuilder<unknown>,
): RawBuilder<string | null> {
  return isPostgres(db)
    ? sql`json_object_agg(${key}, ${value} order by ${key})::text`
    : sql`json_group_object(${key}, ${value} order by ${key})`;
}

/** Whether the table exists in the schema of unqualified names. */
export async function hasTable(db: Database, name: string): Promise<boolean> {
  const query = isPostgres(db)
    ? sql<{ name: string | null }>`select to_regclass(quote_ident(${name}))::text as "name"`
    : sql<{ name: string | null }>`select name from sqlite_master where type = 'table' and name = ${name}`;
  const { rows } = await query.execute(db);
  return rows.some((row) => row.name !== null);
}
