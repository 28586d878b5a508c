/**
 * Workspaces. Formbricks has no such routes.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, PUT to manage. POST is for sessions of
 * owners and managers of the organization.
 */
import { Type } from 'typebox';
import { forPeople, principalOf, readableWorkspaces, sessionOf } from '#api/auth/plugin.ts';
import type { Principal } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { conflict, forbidden, invalidFields, notFound, unauthorized } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { loadManagementWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import {
  changeWorkspace,
  countWorkspaces,
  findWorkspace,
  isNameTaken,
  listWorkspaces,
  type Workspace,
  type WorkspaceSettings,
} from '#api/resources/workspaces/store.ts';
import { newId } from '#api/values/ids.ts';
import { isRecord } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { managedNow, requireManager } from './access.ts';
import { createWorkspace } from './create.ts';
import { visibleName } from './name.ts';
import { NewWorkspace, WorkspaceChange, WorkspaceReply } from './workspace-schema.ts';

const WORKSPACES_MAX = 100;
const LIST_MAX = 500;
const STYLING_BYTES_MAX = 65_536;

const Params = Type.Object({ workspaceId: Type.String() });
const one = { 200: Type.Object({ data: WorkspaceReply }) };

export const workspaceRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, states } = context;
  const url = '/api/v1/management/workspaces';
  const oneUrl = `${url}/:workspaceId`;

  app.get(
    url,
    {
      schema: {
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(WorkspaceReply) }) },
      },
      config: { needsNoWorkspace: true },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const ids = readableWorkspaces(request);
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listWorkspaces(db, ids, page),
      );
      return { data: found.map((workspace) => toReply(workspace, principal)) };
    },
  );

  app.post(
    '/api/v1/organizations/:organizationId/workspaces',
    {
      schema: {
        params: Type.Object({ organizationId: Type.String() }),
        body: NewWorkspace,
        response: one,
      },
      config: { ...forPeople },
      onRequest: requireManager,
    },
    async (request) => {
      const { organizationId } = request.params;
      const name = visibleName(request.body.name);
      const made = await db.transaction().execute(async (trx) => {
        const managed = await managedNow(trx, sessionOf(request), [organizationId]);
        if (managed.length === 0) throw notFound('Organization', organizationId);
        if ((await countWorkspaces(trx, organizationId)) >= WORKSPACES_MAX) {
          throw forbidden(`An organization can have ${WORKSPACES_MAX} workspaces`);
        }
        await refuseTakenName(trx, organizationId, name, null);
        const createdAt = toTimestamp(clock());
        return createWorkspace(trx, { organizationId, id: newId(random), name, createdAt }, random);
      });
      return { data: { ...toReply(made, principalOf(request)), permission: 'manage' } };
    },
  );

  app.get(
    oneUrl,
    { schema: { params: Params, response: one }, onRequest: loadManagementWorkspace(context) },
    async (request) => ({ data: toReply(workspaceOf(request), principalOf(request)) }),
  );

  app.put(
    oneUrl,
    {
      schema: { params: Params, body: WorkspaceChange, response: one },
      onRequest: loadManagementWorkspace(context, 'manage'),
    },
    async (request) => {
      const { id, organizationId } = workspaceOf(request);
      const { name: given, styling, ...settings } = request.body;
      const name = given === undefined ? undefined : visibleName(given);
      const changed = await db.transaction().execute(async (trx) => {
        // If two workspaces take one name at once, the second is refused.
        await lockRow(trx, 'organizations', organizationId);
        if (name !== undefined) await refuseTakenName(trx, organizationId, name, id);
        const stored = await findWorkspace(trx, id);
        if (stored === null) throw unauthorized();
        const next: WorkspaceSettings = {
          ...stored.settings,
          ...settings,
          styling: laidOver(stored.settings.styling, styling),
        };
        return changeWorkspace(
          trx,
          { ...stored, name: name ?? stored.name, settings: next },
          toTimestamp(clock()),
        );
      });
      states.purge(id);
      return { data: toReply(changed, principalOf(request)) };
    },
  );
};

async function refuseTakenName(
  trx: Database,
  organizationId: string,
  name: string,
  except: string | null,
): Promise<void> {
  if (await isNameTaken(trx, organizationId, name, except)) {
    throw conflict(`A workspace with the name ${name} already exists`);
  }
}

function laidOver(stored: unknown, given: object | undefined): unknown {
  if (given === undefined) return stored;
  const styling = { ...(isRecord(stored) ? stored : {}), ...given };
  if (Buffer.byteLength(JSON.stringify(styling)) > STYLING_BYTES_MAX) {
    throw invalidFields({ styling: `must have at most ${STYLING_BYTES_MAX} bytes as JSON` });
  }
  return styling;
}

function toReply({ settings, ...workspace }: Workspace, principal: Principal) {
  const { styling, ...rest } = settings;
  return {
    ...workspace,
    ...rest,
    environmentId: workspace.id,
    styling: isRecord(styling) ? styling : {},
    permission: principal.permissions.get(workspace.id) ?? 'read',
  };
}
