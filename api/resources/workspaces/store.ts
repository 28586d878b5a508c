/**
 * Workspaces. A workspace has two ids: its own, and the legacy environment id. Those that are being deleted are found by
 * none of these queries.
 */
import { countRows } from '#api/db/count.ts';
import type { Database, Timestamp, WorkspaceTable } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { isId } from '#api/values/ids.ts';

export interface Workspace {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  /** The `environmentId` in replies: the legacy id, or the workspace's own. */
  readonly environmentId: string;
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

/** @param scopeId a workspace id or a legacy environment id; a workspace id takes precedence */
export async function findWorkspace(db: Database, scopeId: string): Promise<Workspace | null> {
  if (!isId(scopeId)) return null;
  const rows = await db
    .selectFrom('workspaces')
    .selectAll()
    .where((where) => where.or([where('id', '=', scopeId), where('legacyEnvironmentId', '=', scopeId)]))
    .where('deletingAt', 'is', null)
    .limit(2)
    .execute();
  const row = rows.find(({ id }) => id === scopeId) ?? rows[0];
  return row === undefined ? null : toWorkspace(row);
}

/** A row and the `environmentId` that replies show. */
export type Shown<R> = R & { readonly environmentId: string };

/** Makes one query for any number of rows. */
export async function withEnvironmentIds<R extends { readonly workspaceId: string }>(
  db: Database,
  rows: readonly R[],
): Promise<readonly Shown<R>[]> {
  if (rows.length === 0) return [];
  const workspaces = await db
    .selectFrom('workspaces')
    .select(['id', 'legacyEnvironmentId'])
    .where('id', 'in', [...new Set(rows.map(({ workspaceId }) => workspaceId))])
    .execute();
  const environmentOf = new Map(workspaces.map((row) => [row.id, row.legacyEnvironmentId ?? row.id]));
  return rows.map((row) => ({
    ...row,
    environmentId: environmentOf.get(row.workspaceId) ?? row.workspaceId,
  }));
}

export async function insertWorkspace(db: Database, workspace: Workspace): Promise<void> {
  const { environmentId, settings, ...row } = workspace;
  await db
    .insertInto('workspaces')
    .values({
      ...row,
      legacyEnvironmentId: environmentId === row.id ? null : environmentId,
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
    environmentId: row.legacyEnvironmentId ?? row.id,
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
