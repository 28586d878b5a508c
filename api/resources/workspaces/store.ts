/**
 * Workspaces and their settings. Those that are being deleted are found by none of these queries. Older clients call a
 * workspace an environment; both words name the same id.
 */
import { type Static, Type } from 'typebox';
import type { Database, Decoded, WorkspaceTable } from '#api/db/schema.ts';
import { isId } from '#api/values/ids.ts';
import { MapOf, Nullable, OneOf } from '#api/values/schemas.ts';
import { codecOf } from './table.ts';

const RECONTACT_DAYS_MAX = 3_650;

const Color = Type.String({
  pattern: '^#([0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$',
  text: 'Give a colour such as #64748b',
});

/** An owner may set these for the SDKs of the workspace. */
export const Settings = Type.Object({
  recontactDays: Type.Integer({ minimum: 0, maximum: RECONTACT_DAYS_MAX }),
  clickOutsideClose: Type.Boolean(),
  overlay: OneOf(['none', 'light', 'dark']),
  placement: OneOf(['bottomLeft', 'bottomRight', 'topLeft', 'topRight', 'center']),
  inAppSurveyBranding: Type.Boolean(),
  /** Further keys are stored unchanged, because the SDK that shows surveys may know them. */
  styling: Type.Object({
    allowStyleOverwrite: Type.Optional(Type.Boolean()),
    brandColor: Type.Optional(Type.Object({ light: Color, dark: Type.Optional(Nullable(Color)) })),
  }),
});
type Settings = Static<typeof Settings>;

/** The settings in replies. */
export const shownSettings = { ...Settings.properties, styling: MapOf(Type.Unknown()) };

export const defaultSettings: Settings = {
  recontactDays: 7,
  clickOutsideClose: true,
  overlay: 'none',
  placement: 'bottomRight',
  inAppSurveyBranding: true,
  // SDKs expect a colour in every workspace state. This one is neutral.
  styling: { allowStyleOverwrite: true, brandColor: { light: '#64748b' } },
};

interface Decodings extends Settings {
  appSetupCompleted: boolean;
  websiteSetupCompleted: boolean;
}
type Row = Omit<WorkspaceTable, 'deletingAt'>;
export type Workspace = Decoded<Row, Decodings>;

const { encode, decode } = codecOf<Workspace, Row>({
  flags: ['appSetupCompleted', 'websiteSetupCompleted', 'clickOutsideClose', 'inAppSurveyBranding'],
  json: ['styling'],
  hidden: ['deletingAt'],
});

/** @param id may be any text */
export async function findWorkspace(db: Database, id: string): Promise<Workspace | null> {
  const [found = null] = await listWorkspaces(db, [id]);
  return found;
}

/** Lists workspaces by id. */
export async function listWorkspaces(db: Database, ids: Iterable<string>): Promise<readonly Workspace[]> {
  const wanted = [...ids].filter(isId);
  if (wanted.length === 0) return [];
  const rows = await db
    .selectFrom('workspaces')
    .selectAll()
    .where('id', 'in', wanted)
    .where('deletingAt', 'is', null)
    .orderBy('id')
    .execute();
  return rows.map(decode);
}

export async function insertWorkspace(
  db: Database,
  { createdAt, ...given }: Pick<Workspace, 'id' | 'organizationId' | 'name' | 'createdAt'>,
): Promise<Workspace> {
  const setup = { appSetupCompleted: false, websiteSetupCompleted: false };
  const workspace = { ...given, ...setup, ...defaultSettings, createdAt, updatedAt: createdAt };
  await db.insertInto('workspaces').values(encode(workspace)).execute();
  return workspace;
}

export async function updateWorkspace(db: Database, workspace: Workspace): Promise<void> {
  const { id, ...columns } = encode(workspace);
  await db.updateTable('workspaces').set(columns).where('id', '=', id).execute();
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
