/** Action classes: events in an app that may trigger a survey. */
import { sql } from 'kysely';
import { countRows } from '#api/db/count.ts';
import type { ActionClassTable, Database, Decoded } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';

export type ActionClass = Decoded<ActionClassTable, { noCodeConfig: unknown }>;

export async function listActionClasses(db: Database, workspaceId: string): Promise<readonly ActionClass[]> {
  const rows = await db
    .selectFrom('actionClasses')
    .selectAll()
    .where('workspaceId', '=', workspaceId)
    .orderBy('createdAt')
    .orderBy('id')
    .execute();
  return rows.map(toActionClass);
}

/** Lists the action classes of several workspaces, oldest first, ties by id. */
export async function listActionClassesOf(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly ActionClass[]> {
  const rows = await db
    .selectFrom('actionClasses')
    .selectAll()
    .where('workspaceId', 'in', workspaceIds)
    .orderBy('createdAt')
    .orderBy('id')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  return rows.map(toActionClass);
}

export async function findActionClass(db: Database, id: string): Promise<ActionClass | null> {
  const row = await db.selectFrom('actionClasses').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? null : toActionClass(row);
}

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

export function countActionClasses(db: Database, workspaceId: string): Promise<number> {
  return countRows(db.selectFrom('actionClasses').where('workspaceId', '=', workspaceId));
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

/**
 * @returns false if it was deleted meanwhile
 * @throws the driver's unique violation if the name or the key is taken
 */
export async function updateActionClass(db: Database, actionClass: ActionClass): Promise<boolean> {
  const { id, name, description, type, key, noCodeConfig, updatedAt } = actionClass;
  const { numUpdatedRows } = await db
    .updateTable('actionClasses')
    .set({
      name,
      description,
      type,
      key,
      noCodeConfig: noCodeConfig === null ? null : JSON.stringify(noCodeConfig),
      updatedAt,
    })
    .where('id', '=', id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Deletes an action class, also from the triggers of surveys. */
export async function deleteActionClass(db: Database, id: string): Promise<void> {
  await db.deleteFrom('actionClasses').where('id', '=', id).execute();
}

/** @throws the driver's unique violation if the name or the key is taken */
export async function insertActionClass(db: Database, actionClass: ActionClass): Promise<void> {
  const { noCodeConfig } = actionClass;
  await db
    .insertInto('actionClasses')
    .values({ ...actionClass, noCodeConfig: noCodeConfig === null ? null : JSON.stringify(noCodeConfig) })
    .execute();
}

export function toActionClass(row: ActionClassTable): ActionClass {
  return { ...row, noCodeConfig: row.noCodeConfig === null ? null : JSON.parse(row.noCodeConfig) };
}
