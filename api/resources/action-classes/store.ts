/** Action classes: events in an app that may trigger a survey. */
import { sql } from 'kysely';
import type { ActionClassTable, Database, Decoded } from '#api/db/schema.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';

export type ActionClass = Decoded<ActionClassTable, { noCodeConfig: unknown }>;

export const actionClasses = workspaceTable<ActionClass>('actionClasses', {
  json: ['noCodeConfig'],
  // SDKs download them all.
  limit: { max: 500, noun: 'action classes' },
});

/** @returns the field whose value another action class of the workspace has; null if there is none */
export async function findTaken(
  db: Database,
  { id, workspaceId, name, key }: Pick<ActionClass, 'id' | 'workspaceId' | 'name' | 'key'>,
): Promise<'name' | 'key' | null> {
  const others = await db
    .selectFrom('actionClasses')
    .select(['name', 'key'])
    .where('workspaceId', '=', workspaceId)
    .where((where) => where.or([where('name', '=', name), ...(key === null ? [] : [where('key', '=', key)])]))
    .where('id', '!=', id)
    .execute();
  // If both are taken, the key counts, because calls to `track` use it.
  if (others.some((other) => other.key !== null && other.key === key)) return 'key';
  return others.length > 0 ? 'name' : null;
}

/** @returns the size of `noCodeConfig` of all action classes of a workspace */
export async function configBytes(db: Database, workspaceId: string): Promise<number> {
  const row = await db
    .selectFrom('actionClasses')
    .select(sql<string | number | null>`sum(octet_length("noCodeConfig"))`.as('bytes'))
    .where('workspaceId', '=', workspaceId)
    .executeTakeFirst();
  return Number(row?.bytes ?? 0);
}
