/** How the database would answer a query: tests hold lists to reading an index instead of a table. */
import { type Compilable, CompiledQuery, type Kysely, sql } from 'kysely';
import { isPostgres } from '#api/db/dialect.ts';
import type { Database } from '#api/db/schema.ts';

/** What a piece of code asks of the database, in order, while it runs on the database it is given. */
export async function queriesOf(
  db: Kysely<Database>,
  run: (db: Kysely<Database>) => Promise<unknown>,
): Promise<readonly CompiledQuery[]> {
  const { db: recording, queries } = recordingOf(db);
  await run(recording);
  return queries;
}

/** The same database, and all that it was asked so far. */
export function recordingOf(db: Kysely<Database>): {
  readonly db: Kysely<Database>;
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
  // What was compiled before is not seen by plugins.
  const execute = recording.executeQuery.bind(recording);
  recording.executeQuery = <R>(query: CompiledQuery<R> | Compilable<R>) => {
    const ready = 'compile' in query ? query.compile() : query;
    queries.push(ready);
    return execute(ready);
  };
  return { db: recording, queries };
}

/**
 * @returns one line per step, in the words of SQLite on either database, e.g. `SEARCH contacts USING INDEX contacts_list
 *   (workspaceId=?)`; `SCAN` for a table or an index from end to end, `USE TEMP B-TREE FOR ORDER BY` for sorting
 */
export async function planOf(
  db: Kysely<Database>,
  query: Compilable | CompiledQuery,
): Promise<readonly string[]> {
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
 * What the tables of a test hold is read fastest from end to end, so the planner is asked to do so only where it must. It is
 * also asked not to sort, unless it then reads an index from end to end for the sake of its order.
 */
async function planOfPostgres(
  db: Kysely<Database>,
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
  db: Kysely<Database>,
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

/** `(("workspaceId" = 'ws1'::text) AND ("createdAt" >= '2026'::text))` as `workspaceId=? AND createdAt>?` */
function comparisons(condition: string): string {
  const found = condition.matchAll(/\(+(?:ROW\()?"?(\w+)"?\)?(?:::\w+)? (<|>|=|IS NOT NULL)/g);
  return Array.from(found, ([, column, operator]) =>
    operator === 'IS NOT NULL' ? `${column} IS NOT NULL` : `${column}${operator}?`,
  ).join(' AND ');
}
