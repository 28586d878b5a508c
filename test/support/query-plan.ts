/** Reads how the database would execute a query. Tests check that lists read an index instead of a table. */
import { type Compilable, CompiledQuery, sql } from 'kysely';
import { isPostgres } from '#api/db/migrations/schema-writer.ts';
import type { Database } from '#api/db/schema.ts';
import { type ApiOptions, startApi, type TestApi } from './api-app.ts';
import type { Owner } from './gateway.ts';

/** Returns the statements that a piece of code sends to the database that it is given, in order. */
export async function queriesOf(
  db: Database,
  run: (db: Database) => Promise<unknown>,
): Promise<readonly CompiledQuery[]> {
  const { db: recording, queries } = recordingOf(db);
  await run(recording);
  return queries;
}

/** Returns the same database, and the statements that it has got so far. */
export function recordingOf(db: Database): {
  readonly db: Database;
  readonly queries: CompiledQuery[];
} {
  const queries: CompiledQuery[] = [];
  const recording = db.withPlugin({
    transformQuery: ({ node }) => {
      queries.push(db.getExecutor().compileQuery(node, { queryId: String(queries.length) }));
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  // Plugins do not see queries that were compiled before.
  const execute = recording.executeQuery.bind(recording);
  recording.executeQuery = <R>(query: CompiledQuery<R> | Compilable<R>) => {
    const ready = 'compile' in query ? query.compile() : query;
    queries.push(ready);
    return execute(ready);
  };
  return { db: recording, queries };
}

/**
 * Starts an API whose queries are recorded.
 *
 * @returns the queries since its start, and the same database for queries of the test
 */
export async function startRecordedApi(
  owner: Owner,
  options: ApiOptions = {},
): Promise<{ readonly api: TestApi; readonly db: Database; readonly queries: CompiledQuery[] }> {
  const found: { readonly db: Database; readonly queries: CompiledQuery[] }[] = [];
  const api = await startApi(owner, {
    ...options,
    parts: ({ db }) => {
      const recording = recordingOf(db);
      found.push({ db, queries: recording.queries });
      return { db: recording.db };
    },
  });
  const [recorded] = found;
  if (recorded === undefined) throw new Error('The API has no database');
  recorded.queries.length = 0;
  return { api, ...recorded };
}

/**
 * @returns one line per step, in the words of SQLite on either database, e.g. `SEARCH contacts USING INDEX contacts_list
 *   (workspaceId=?)`; `SCAN` for a table or an index from end to end, `USE TEMP B-TREE FOR ORDER BY` for sorting
 */
export async function planOf(db: Database, query: Compilable | CompiledQuery): Promise<readonly string[]> {
  const { sql: text, parameters } = 'compile' in query ? query.compile() : query;
  if (isPostgres(db)) return planOfPostgres(db, text, parameters);
  const parts = text.split('?');
  const bound = parts.reduce(
    (all, part, i) => (i === 0 ? sql`${sql.raw(part)}` : sql`${all}${parameters[i - 1]}${sql.raw(part)}`),
    sql``,
  );
  const { rows } = await sql<{ detail: string }>`explain query plan ${bound}`.execute(db);
  return rows.map(({ detail }) => detail);
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly Plans?: readonly PlanNode[];
}

/**
 * Tables of tests are so small that a scan is fastest, so the planner is told to avoid scans. It is also told to avoid
 * sorting, unless it would then scan an index for its order.
 */
async function planOfPostgres(
  db: Database,
  text: string,
  parameters: readonly unknown[],
): Promise<readonly string[]> {
  const ways = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin'];
  const unsorted = await planWithout(db, [...ways, 'sort'], text, parameters);
  const isScan = (line: string): boolean => line.startsWith('SCAN ');
  if (!unsorted.some(isScan)) return unsorted;
  const sorted = await planWithout(db, ways, text, parameters);
  return sorted.some(isScan) ? unsorted : sorted;
}

function planWithout(
  db: Database,
  ways: readonly string[],
  text: string,
  parameters: readonly unknown[],
): Promise<readonly string[]> {
  return db.transaction().execute(async (trx) => {
    for (const way of ways) {
      await sql`set local ${sql.ref(`enable_${way}`)} = off`.execute(trx);
    }
    const { rows } = await trx.executeQuery<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>(
      CompiledQuery.raw(`explain (format json) ${text}`, [...parameters]),
    );
    return rows.flatMap((row) => row['QUERY PLAN']).flatMap(({ Plan }) => linesOf(Plan));
  });
}

function linesOf(node: PlanNode): readonly string[] {
  const below = (node.Plans ?? []).flatMap(linesOf);
  const type = node['Node Type'];
  const table = node['Relation Name'];
  if (/Sort$/.test(type)) return [...below, 'USE TEMP B-TREE FOR ORDER BY'];
  if (type === 'Seq Scan') return [`SCAN ${table}`, ...below];
  if (!/^Index (Only )?Scan$/.test(type)) return below;
  const covering = type === 'Index Only Scan' ? 'COVERING ' : '';
  const using = `${table} USING ${covering}INDEX ${node['Index Name']}`;
  const condition = node['Index Cond'];
  return [
    condition === undefined ? `SCAN ${using}` : `SEARCH ${using} (${comparisons(condition)})`,
    ...below,
  ];
}

/** Writes `(("workspaceId" = 'ws1'::text) AND ("createdAt" >= '2026'::text))` as `workspaceId=? AND createdAt>?`. */
function comparisons(condition: string): string {
  const found = condition.matchAll(/\(+(?:ROW\()?"?(\w+)"?\)?(?:::\w+)? (<|>|=|IS NOT NULL)/g);
  return Array.from(found, ([, column, operator]) =>
    operator === 'IS NOT NULL' ? `${column} IS NOT NULL` : `${column}${operator}?`,
  ).join(' AND ');
}
