/** How SQLite would answer a query: tests hold lists to reading an index instead of a table. */
import { type Compilable, type CompiledQuery, type Kysely, sql } from 'kysely';
import type { Database } from '#api/db/schema.ts';

/** What a piece of code asks of the database, in order, while it runs on the database it is given. */
export async function queriesOf(
  db: Kysely<Database>,
  run: (db: Kysely<Database>) => Promise<unknown>,
): Promise<readonly CompiledQuery[]> {
  const queries: CompiledQuery[] = [];
  const recording = db.withPlugin({
    transformQuery: ({ node }) => {
      queries.push(db.getExecutor().compileQuery(node, { queryId: String(queries.length) }));
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  await run(recording);
  return queries;
}

/** @returns one line per step, e.g. `SEARCH contacts USING INDEX contacts_list (workspaceId=?)` */
export async function planOf(
  db: Kysely<Database>,
  query: Compilable | CompiledQuery,
): Promise<readonly string[]> {
  const { sql: text, parameters } = 'compile' in query ? query.compile() : query;
  const parts = text.split('?');
  const bound = parts.reduce(
    (all, part, i) => (i === 0 ? sql`${sql.raw(part)}` : sql`${all}${parameters[i - 1]}${sql.raw(part)}`),
    sql``,
  );
  const { rows } = await sql<{ detail: string }>`explain query plan ${bound}`.execute(db);
  return rows.map(({ detail }) => detail);
}
