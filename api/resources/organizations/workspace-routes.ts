/**
 * Workspaces. Formbricks has no such routes.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, PUT to manage. POST is for sessions of
 * owners and managers of the organization.
 */
import { type Static, Type } from 'typebox';
import { forPeople, principalOf, readableWorkspaces, requireRight, sessionOf } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { countRows } from '#api/db/count.ts';
import { lockRow } from '#api/db/locks.ts';
import { existing, forbidden, invalidFields, notFound } from '#api/errors.ts';
import {
  findWorkspace,
  listWorkspaces,
  Settings,
  shownSettings,
  updateWorkspace,
  type Workspace,
} from '#api/resources/workspaces/store.ts';
import { picked, rowFields } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { createWorkspace } from './create.ts';
import { managedNow } from './store.ts';

const WORKSPACES_MAX = 100;
const STYLING_BYTES_MAX = 16_384;

const Name = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '\\S',
  text: 'must have more than spaces',
});
const Change = Type.Partial(Type.Object({ name: Name, ...Settings.properties }));
const Reply = Type.Object({
  ...rowFields,
  organizationId: Type.String(),
  name: Type.String(),
  /** The caller's permission in it: `read`, `write` or `manage`. */
  permission: Type.String(),
  appSetupCompleted: Type.Boolean(),
  websiteSetupCompleted: Type.Boolean(),
  ...shownSettings,
});
const plain = ['recontactDays', 'clickOutsideClose', 'overlay', 'placement', 'inAppSurveyBranding'] as const;
const one = { 200: Type.Object({ data: Reply }) };

export const workspaceRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, states } = context;
  const url = '/api/v1/management/workspaces';

  app.get(
    url,
    {
      schema: { response: { 200: Type.Object({ data: Type.Array(Reply) }) } },
      config: { needsNoWorkspace: true },
    },
    async (request) => {
      const { permissions } = principalOf(request);
      const found = await listWorkspaces(db, readableWorkspaces(request));
      return { data: found.map((one) => toReply(one, permissions.get(one.id) ?? 'read')) };
    },
  );

  app.post(
    '/api/v1/organizations/:organizationId/workspaces',
    {
      schema: {
        params: Type.Object({ organizationId: Type.String() }),
        body: Type.Object({ name: Name }),
        response: one,
      },
      config: forPeople,
    },
    async (request) => {
      const { organizationId } = request.params;
      const name = request.body.name.trim();
      const made = await db.transaction().execute(async (trx) => {
        const managed = await managedNow(trx, sessionOf(request), [organizationId]);
        // Other people do not learn which organizations exist.
        if (managed.length === 0) throw notFound('Organization', organizationId);
        const all = trx.selectFrom('workspaces').where('organizationId', '=', organizationId);
        if ((await countRows(all.where('deletingAt', 'is', null))) >= WORKSPACES_MAX) {
          throw forbidden(`An organization can have ${WORKSPACES_MAX} workspaces`);
        }
        return createWorkspace(trx, { organizationId, name, createdAt: toTimestamp(clock()) }, random);
      });
      return { data: toReply(made, 'manage') };
    },
  );

  app.put(
    `${url}/:workspaceId`,
    {
      schema: { params: Type.Object({ workspaceId: Type.String() }), body: Change, response: one },
    },
    async (request) => {
      const { workspaceId } = request.params;
      const changed = await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'workspaces', workspaceId);
        const stored = existing(await findWorkspace(trx, workspaceId), 'Workspace', workspaceId);
        requireRight(request, workspaceId, 'manage');
        const workspace = {
          ...laidOver(stored, request.body),
          updatedAt: toTimestamp(clock()),
        };
        await updateWorkspace(trx, workspace);
        return workspace;
      });
      states.purge(workspaceId);
      return { data: toReply(changed, 'manage') };
    },
  );
};

/** Replaces fields, and single keys of the styling. */
function laidOver(stored: Workspace, change: Static<typeof Change>): Workspace {
  const styling = { ...stored.styling, ...change.styling };
  if (Buffer.byteLength(JSON.stringify(styling)) > STYLING_BYTES_MAX) {
    throw invalidFields({ styling: `must have at most ${STYLING_BYTES_MAX} bytes as JSON` });
  }
  return { ...stored, ...picked(change, plain), name: change.name?.trim() ?? stored.name, styling };
}

function toReply(workspace: Workspace, permission: string) {
  return { ...workspace, workspaceId: workspace.id, environmentId: workspace.id, permission };
}
