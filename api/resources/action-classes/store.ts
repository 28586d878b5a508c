/** Action classes: what happens in an app and may trigger a survey. */
import type { Kysely, Selectable } from 'kysely';
import type { ActionClassTable, Database, Timestamp } from '#api/db/schema.ts';

export interface ActionClass {
  readonly id: string;
  readonly workspaceId: string;
  readonly name: string;
  readonly description: string | null;
  readonly type: 'code' | 'noCode' | 'automatic';
  readonly key: string | null;
  readonly noCodeConfig: unknown;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

/** All of a workspace, oldest first. */
export async function listActionClasses(
  db: Kysely<Database>,
  workspaceId: string,
): Promise<readonly ActionClass[]> {
  const rows = await db
    .selectFrom('actionClasses')
    .selectAll()
    .where('workspaceId', '=', workspaceId)
    .orderBy('createdAt')
    .orderBy('id')
    .execute();
  return rows.map(toActionClass);
}

export async function insertActionClass(db: Kysely<Database>, actionClass: ActionClass): Promise<void> {
  const { noCodeConfig } = actionClass;
  await db
    .insertInto('actionClasses')
    .values({ ...actionClass, noCodeConfig: noCodeConfig === null ? null : JSON.stringify(noCodeConfig) })
    .execute();
}

export function toActionClass(row: Selectable<ActionClassTable>): ActionClass {
  return { ...row, noCodeConfig: row.noCodeConfig === null ? null : JSON.parse(row.noCodeConfig) };
}
