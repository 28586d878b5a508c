/**
 * Fills a database with responses and what belongs to them, past the API: a million through it would take an hour.
 * Rows are shaped as the API writes them, with ids as random as its own, so that indexes are as scattered as in life.
 */
import SqliteDatabase from 'better-sqlite3';
import { digestOfValue } from '#api/db/unique-values.ts';

/** Of every hundred responses: this many from new contacts; the others come from contacts that were there before. */
const NEW_CONTACTS_PER_HUNDRED = 25;
const RESPONSES_PER_BATCH = 10_000;
/** SQLite takes 32,766 values a statement. */
const ROWS_PER_STATEMENT = 200;

export interface FillPlan {
  readonly workspaceId: string;
  /** The first one gets half of all responses, the others share the rest. */
  readonly surveyIds: readonly string[];
  readonly attributeKeyId: string;
  /** The number of responses that the database has afterwards. */
  readonly responses: number;
}

export interface FillOptions extends FillPlan {
  readonly path: string;
}

export interface Filled {
  readonly seconds: number;
  readonly bytes: number;
}

type Row = readonly (string | number | null)[];

const tables = {
  contacts: ['id', 'createdAt', 'updatedAt', 'workspaceId', 'userId'],
  contactAttributes: ['id', 'createdAt', 'updatedAt', 'contactId', 'attributeKeyId', 'value', 'uniqueDigest'],
  displays: ['id', 'createdAt', 'updatedAt', 'surveyId', 'contactId'],
  responses: [
    ...['id', 'createdAt', 'updatedAt', 'workspaceId', 'surveyId', 'contactId', 'displayId', 'endingId'],
    ...['finished', 'data', 'variables', 'ttc', 'meta', 'contactAttributes', 'singleUseId', 'language'],
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type Table = keyof typeof tables;

export function fill(options: FillOptions): Filled {
  const began = performance.now();
  const db = new SqliteDatabase(options.path);
  // What a crash would lose is made anew: no journal, and pages are written once, when all are complete.
  db.pragma('journal_mode = OFF');
  db.pragma('synchronous = OFF');
  db.pragma('cache_size = -4000000');
  db.pragma('foreign_keys = OFF');
  const insert = inserter(db);
  let at = count(db, 'responses');
  const contactIds = ids(db, 'contacts');
  db.exec('begin exclusive');
  const indexes = dropIndexes(db);
  while (at < options.responses) {
    const until = Math.min(options.responses, at + RESPONSES_PER_BATCH);
    insert(batch(options, at, until, contactIds));
    at = until;
  }
  for (const index of indexes) db.exec(index);
  db.exec('commit');
  db.pragma('journal_mode = WAL');
  const pragma = (name: string): number => Number(db.pragma(name, { simple: true }));
  const bytes = pragma('page_count') * pragma('page_size');
  db.close();
  return { seconds: (performance.now() - began) / 1000, bytes };
}

export interface Sample {
  readonly responseIds: readonly string[];
  /** Of contacts that are there. */
  readonly userIds: readonly string[];
}

/** Some rows of the tables, spread evenly over them. */
export function sample(path: string, size: number): Sample {
  const db = new SqliteDatabase(path, { readonly: true });
  const column = (name: 'id' | 'userId', table: Table): readonly string[] =>
    db
      .prepare<[number], { value: string }>(
        `select "${name}" as value from "${table}"
         where "rowid" % max(1, (select max("rowid") from "${table}") / ?) = 0 and "${name}" is not null`,
      )
      .all(size)
      .map(({ value }) => value)
      .slice(0, size);
  const found = { responseIds: column('id', 'responses'), userIds: column('userId', 'contacts') };
  db.close();
  return found;
}

function batch(
  { attributeKeyId, surveyIds, workspaceId }: FillOptions,
  from: number,
  until: number,
  contactIds: string[],
): Record<Table, Row[]> {
  const rows: Record<Table, Row[]> = { contacts: [], contactAttributes: [], displays: [], responses: [] };
  for (let i = from; i < until; i++) {
    const at = new Date(Date.UTC(2024, 0, 1) + i * 1_000).toISOString();
    const surveyId = surveyIds[i % 2 === 0 ? 0 : 1 + (((i - 1) / 2) % (surveyIds.length - 1))] ?? '';
    if (i % 100 < NEW_CONTACTS_PER_HUNDRED) {
      const contactId = newId();
      const userId = `user-${i}`;
      contactIds.push(contactId);
      rows.contacts.push([contactId, at, at, workspaceId, userId]);
      rows.contactAttributes.push([
        ...[newId(), at, at, contactId, attributeKeyId, userId, digestOfValue(userId)],
      ]);
    }
    const contactId = contactIds[Math.floor(Math.random() * contactIds.length)] ?? null;
    const displayId = newId();
    rows.displays.push([displayId, at, at, surveyId, contactId]);
    rows.responses.push([
      ...[newId(), at, at, workspaceId, surveyId, contactId, displayId, null, i % 5 === 0 ? 0 : 1],
      ...[JSON.stringify({ q1: `An answer of some length, number ${i}`, q2: i % 11 }), '{}'],
      ...[
        '{"q1":2300,"q2":900,"_total":3200}',
        '{"url":"https://shop.example/","source":"bench"}',
        '{}',
        null,
      ],
      'default',
    ]);
  }
  return rows;
}

/** Sorting once is faster than finding the place of every row. @returns the statements that bring them back */
function dropIndexes(db: SqliteDatabase.Database): readonly string[] {
  const names = Object.keys(tables);
  const indexes = db
    .prepare<string[], { name: string; sql: string }>(
      `select "name", "sql" from "sqlite_master"
       where "type" = 'index' and "sql" is not null and "tbl_name" in (${names.map(() => '?').join(', ')})`,
    )
    .all(...names);
  for (const { name } of indexes) db.exec(`drop index "${name}"`);
  return indexes.map(({ sql }) => sql);
}

/** Prepared statements of many rows, and one for what is left. */
function inserter(db: SqliteDatabase.Database): (rows: Record<Table, Row[]>) => void {
  const statements = new Map<string, SqliteDatabase.Statement>();
  const statement = (table: Table, rows: number): SqliteDatabase.Statement => {
    const key = `${table} ${rows}`;
    const columns = tables[table];
    const row = `(${columns.map(() => '?').join(', ')})`;
    const known =
      statements.get(key) ??
      db.prepare(
        `insert into "${table}" (${columns.map((name) => `"${name}"`).join(', ')}) values ${Array(rows).fill(row).join(', ')}`,
      );
    statements.set(key, known);
    return known;
  };
  return (batches) => {
    for (const table of ['contacts', 'contactAttributes', 'displays', 'responses'] as const) {
      const rows = batches[table];
      for (let i = 0; i < rows.length; i += ROWS_PER_STATEMENT) {
        const part = rows.slice(i, i + ROWS_PER_STATEMENT);
        statement(table, part.length).run(part.flat());
      }
    }
  };
}

function count(db: SqliteDatabase.Database, table: Table): number {
  return db.prepare<[], { n: number }>(`select count(*) as n from "${table}"`).get()?.n ?? 0;
}

function ids(db: SqliteDatabase.Database, table: Table): string[] {
  return db
    .prepare<[], { id: string }>(`select "id" from "${table}"`)
    .all()
    .map(({ id }) => id);
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';

/** As the API's: `c` and 24 lower-case letters and digits. */
function newId(): string {
  let id = 'c';
  for (let i = 0; i < 24; i++) id += ALPHABET[Math.floor(Math.random() * ALPHABET.length)];
  return id;
}
