/** Runs SQL statements on a database of the bench. The dialects of SQLite and PostgreSQL are kept here. */
import { createHash } from 'node:crypto';
import SqliteDatabase from 'better-sqlite3';
import pg from 'pg';
import { digestOfValue } from '#api/db/unique-values.ts';

export interface Sql {
  run(statement: string): Promise<void>;
  /** Runs a query. @returns the first column of the result */
  column(query: string): Promise<readonly unknown[]>;
  /** Returns SQL for the numbers from `from` to below `until`, in a column `name`. */
  series(name: string, from: number, until: number): string;
  /** Returns SQL for a time. @param seconds SQL for the number of seconds since the beginning of 2024 */
  time(seconds: string): string;
  /** Returns SQL for the digest that the API stores with unique attributes. */
  digest(text: string): string;
  /** Returns queries whose results are SQL statements. They drop and create all indexes except primary keys. */
  indexes(tables: readonly string[]): { readonly drop: string; readonly create: string };
  /** Statements before a database is filled. They switch durability off, because the bench can fill it again. */
  readonly before: readonly string[];
  /** Statements after a database is filled. */
  readonly after: readonly string[];
  /** Query for the size of the database in bytes. */
  readonly bytes: string;
  close(): Promise<void>;
}

/** @param url address of the database, in the form of `DATABASE_URL` */
export function openSql(url: string): Sql {
  return url.startsWith('file:') ? openSqlite(url.slice('file:'.length)) : openPostgres(url);
}

function openSqlite(path: string): Sql {
  const db = new SqliteDatabase(path);
  db.function('md5', { deterministic: true }, (text) => createHash('md5').update(String(text)).digest('hex'));
  db.function('digest', { deterministic: true }, (text) => digestOfValue(String(text)));
  return {
    run: async (statement) => void db.exec(statement),
    column: async (query) => db.prepare(query).pluck().all(),
    series: (name, from, until) =>
      `(with recursive s(n) as (select ${from} union all select n + 1 from s where n < ${until - 1}) select n as ${name} from s)`,
    time: (seconds) => `strftime('%Y-%m-%dT%H:%M:%S.000Z', 1704067200 + ${seconds}, 'unixepoch')`,
    digest: (text) => `digest(${text})`,
    indexes(tables) {
      const own = `from "sqlite_master" where "type" = 'index' and "sql" is not null and "tbl_name" in (${list(tables)})`;
      return { drop: `select 'drop index "' || "name" || '"' ${own}`, create: `select "sql" ${own}` };
    },
    before: ['journal_mode = off', 'synchronous = off', 'cache_size = -4000000', 'foreign_keys = off'].map(
      (setting) => `pragma ${setting}`,
    ),
    after: ['pragma journal_mode = wal'],
    bytes: 'select page_count * page_size from pragma_page_count(), pragma_page_size()',
    close: async () => void db.close(),
  };
}

function openPostgres(url: string): Sql {
  // Two connections share the work. Foreign keys are not checked, because `fill` creates only valid references.
  const options = '-c session_replication_role=replica -c synchronous_commit=off';
  const pool = new pg.Pool({ connectionString: url, max: 2, options });
  return {
    run: async (statement) => void (await pool.query(statement)),
    column: async (query) =>
      (await pool.query({ text: query, rowMode: 'array' })).rows.map(([value]) => value),
    series: (name, from, until) => `generate_series(${from}::bigint, ${until - 1}::bigint) as ${name}`,
    time: (seconds) =>
      `to_char(timestamp '2024-01-01' + ${seconds} * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS".000Z"')`,
    digest: (text) =>
      `rtrim(translate(encode(sha256(convert_to(${text}, 'UTF8')), 'base64'), '+/', '-_'), '=')`,
    indexes(tables) {
      const of = tables.map((table) => `'"${table}"'::regclass`).join(', ');
      const unique = `from pg_constraint where contype = 'u' and conrelid in (${of})`;
      const others = `from pg_index where indrelid in (${of})
        and not exists (select 1 from pg_constraint where conindid = indexrelid)`;
      const add = `'alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)`;
      return {
        drop: `select format('alter table %s drop constraint %I', conrelid::regclass, conname) ${unique}
          union all select format('drop index %s', indexrelid::regclass) ${others}`,
        create: `select format(${add}) ${unique} union all select pg_get_indexdef(indexrelid) ${others}`,
      };
    },
    before: [],
    after: ['vacuum analyze', 'checkpoint'],
    bytes: 'select pg_database_size(current_database())',
    close: () => pool.end(),
  };
}

function list(texts: readonly string[]): string {
  return texts.map((text) => `'${text}'`).join(', ');
}
