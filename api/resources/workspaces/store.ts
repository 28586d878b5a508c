/**
 * Workspaces. Those that are being deleted are found by none of these queries. Older clients call a workspace an
 * environment; both words name the same id.
 */
import { countRows } from '#api/db/count.ts';
import type { Database, Timestamp, WorkspaceTable } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { isId } from '#api/values/ids.ts';

export interface Workspace {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly appSetupCompleted: boolean;
  readonly websiteSetupCompleted: boolean;
  readonly settings: WorkspaceSettings;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

export interface WorkspaceSettings {
  readonly recontactDays: number;
  readonly clickOutsideClose: boolean;
  readonly overlay: string;
  readonly placement: string;
  readonly inAppSurveyBranding: boolean;
  readonly styling: unknown;
}

export const defaultSettings: WorkspaceSettings = {
  recontactDays: 7,
  clickOutsideClose: true,
  overlay: 'none',
  placement: 'bottomRight',
  inAppSurveyBranding: true,
  // SDKs expect a colour in every workspace state. This one is neutral.
  styling: { allowStyleOverwrite: true, brandColor: { light: '#64748b' } },
};

/** @param id may be any text */
export async function findWorkspace(db: Database, id: string): Promise<Workspace | null> {
  if (!isId(id)) return null;
  const row = await db
    .selectFrom('workspaces')
    .selectAll()
    .where('id', '=', id)
    .where('deletingAt', 'is', null)
    .executeTakeFirst();
  return row === undefined ? null : toWorkspace(row);
}

export async function insertWorkspace(db: Database, workspace: Workspace): Promise<void> {
  const { settings, ...row } = workspace;
  await db
    .insertInto('workspaces')
    .values({
      ...row,
      appSetupCompleted: row.appSetupCompleted ? 1 : 0,
      websiteSetupCompleted: row.websiteSetupCompleted ? 1 : 0,
      ...settingColumns(settings),
    })
    .execute();
}

/** Lists workspaces by id. This is the order of the index. */
export async function listWorkspaces(
  db: Database,
  ids: readonly string[],
  page: ListPage,
): Promise<readonly Workspace[]> {
  const wanted = ids.toSorted().slice(page.skip, page.skip + page.limit);
  if (wanted.length === 0) return [];
  const rows = await db
    .selectFrom('workspaces')
    .selectAll()
    .where('id', 'in', wanted)
    .orderBy('id')
    .execute();
  return rows.map(toWorkspace);
}

export function countWorkspaces(db: Database, organizationId: string): Promise<number> {
  return countRows(
    db.selectFrom('workspaces').where('organizationId', '=', organizationId).where('deletingAt', 'is', null),
  );
}

/** @param except the workspace that may have it */
export async function isNameTaken(
  db: Database,
  organizationId: string,
  name: string,
  except: string | null,
): Promise<boolean> {
  const rows = await db
    .selectFrom('workspaces')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('name', '=', name)
    .where('deletingAt', 'is', null)
    .limit(2)
    .execute();
  return rows.some(({ id }) => id !== except);
}

/** Writes the name and the settings. @returns the workspace after the change */
export async function changeWorkspace(
  db: Database,
  workspace: Workspace,
  now: Timestamp,
): Promise<Workspace> {
  await db
    .updateTable('workspaces')
    .set({ name: workspace.name, updatedAt: now, ...settingColumns(workspace.settings) })
    .where('id', '=', workspace.id)
    .execute();
  return { ...workspace, updatedAt: now };
}

/** Deletes a marked workspace with the rows that are left in it. */
export async function deleteWorkspace(db: Database, id: string): Promise<void> {
  await db.deleteFrom('workspaces').where('id', '=', id).where('deletingAt', 'is not', null).execute();
}

/** Records that an SDK requested the workspace's state. No settings change, so `updatedAt` stays. */
export async function markAppSetUp(db: Database, workspaceId: string): Promise<void> {
  await db
    .updateTable('workspaces')
    .set({ appSetupCompleted: 1 })
    .where('id', '=', workspaceId)
    .where('appSetupCompleted', '=', 0)
    .execute();
}

function settingColumns(settings: WorkspaceSettings) {
  return {
    recontactDays: settings.recontactDays,
    clickOutsideClose: settings.clickOutsideClose ? 1 : 0,
    overlay: settings.overlay,
    placement: settings.placement,
    inAppSurveyBranding: settings.inAppSurveyBranding ? 1 : 0,
    styling: JSON.stringify(settings.styling),
  } as const;
}

function toWorkspace(row: WorkspaceTable): Workspace {
  return {
    id: row.id,
    organizationId: row.organizationId,
    name: row.name,
    appSetupCompleted: row.appSetupCompleted === 1,
    websiteSetupCompleted: row.websiteSetupCompleted === 1,
    settings: {
      recontactDays: row.recontactDays,
      clickOutsideClose: row.clickOutsideClose === 1,
      overlay: row.overlay,
      placement: row.placement,
      inAppSurveyBranding: row.inAppSurveyBranding === 1,
      styling: JSON.parse(row.styling),
    },
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}
