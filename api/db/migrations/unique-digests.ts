/**
 * Unique columns with long texts. An index of PostgreSQL cannot hold such a text, so it has the SHA-256 instead, and only
 * of rows that have a text.
 */
import { sql } from 'kysely';
import type { SchemaWriter } from './schema-writer.ts';

/** The columns of each index. PostgreSQL's error names the index only. */
export const uniqueDigests: Readonly<Record<string, readonly [owner: string, text: string]>> = {
  actionClasses_key: ['actionClasses.workspaceId', 'actionClasses.key'],
  responses_singleUseId: ['responses.surveyId', 'responses.singleUseId'],
};

/** @returns the list as a constraint for SQLite, which indexes the text itself */
export function uniqueUnlessDigested(
  { isPostgres }: SchemaWriter,
  columns: readonly string[],
): readonly (readonly string[])[] {
  return isPostgres ? [] : [columns];
}

/** Makes one of these indexes, on PostgreSQL only. */
export async function createUniqueDigest(
  { schema, isPostgres }: SchemaWriter,
  table: string,
  owner: string,
  text: string,
): Promise<void> {
  if (!isPostgres) return;
  await schema
    .createIndex(`${table}_${text}`)
    .unique()
    .on(table)
    .column(owner)
    // A backslash begins an escape when text is cast to bytea.
    .expression(sql`sha256(replace(${sql.ref(text)}, '\\', '\\\\')::bytea)`)
    .where(text, 'is not', null)
    .execute();
}
