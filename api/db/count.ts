/** Counts the rows that a query without a selection matches. PostgreSQL returns counts as text. */
import type { SelectQueryBuilder } from 'kysely';
import type { Tables } from './schema.ts';

export async function countRows<Table extends keyof Tables>(
  matching: SelectQueryBuilder<Tables, Table, unknown>,
): Promise<number> {
  const { count } = await matching.select(({ fn }) => fn.countAll().as('count')).executeTakeFirstOrThrow();
  return Number(count);
}
