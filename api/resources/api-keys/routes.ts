/**
 * API keys. The text of a key is shown once, in the reply that creates it.
 *
 * Callers: sessions of owners and managers of an organization.
 */
import { Type } from 'typebox';
import { forPeople, sessionOf } from '#api/auth/plugin.ts';
import type { SessionPrincipal } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, existing, unauthorized } from '#api/errors.ts';
import { managed } from '#api/resources/organizations/access.ts';
import { Id, OneOf } from '#api/values/schemas.ts';
import { createApiKey, revokeApiKey } from './create.ts';
import { listApiKeys } from './store.ts';

const PERMISSIONS_MAX = 500;

const permissions = ['read', 'write', 'manage'] as const;
const WorkspacePermission = Type.Object({ workspaceId: Id, permission: OneOf(permissions) });
const OrganizationAccess = Type.Object({
  accessControl: Type.Object({ read: Type.Boolean(), write: Type.Boolean() }),
});
const NewApiKey = Type.Object({
  label: Type.String({ minLength: 1, maxLength: 255 }),
  /** Id of the organization. Only people with several organizations need it. */
  organizationId: Type.Optional(Id),
  /** Without `allWorkspaces` and `workspacePermissions`, the key manages every workspace of the organization. */
  allWorkspaces: Type.Optional(OneOf(permissions)),
  workspacePermissions: Type.Optional(Type.Array(WorkspacePermission, { maxItems: PERMISSIONS_MAX })),
  organizationAccess: Type.Optional(OrganizationAccess),
});

const shape = {
  id: Type.String(),
  organizationId: Type.String(),
  label: Type.String(),
  createdAt: Type.String(),
  createdBy: Type.Union([Type.String(), Type.Null()]),
  lastUsedAt: Type.Union([Type.String(), Type.Null()]),
  organizationAccess: OrganizationAccess,
  allWorkspaces: Type.Union([OneOf(permissions), Type.Null()]),
  workspacePermissions: Type.Array(WorkspacePermission),
};
const ApiKeyReply = Type.Object(shape);
const NewApiKeyReply = Type.Object({ ...shape, apiKey: Type.String() });

export const apiKeyRoutes: Routes = async (app, { context }) => {
  const { db } = context;

  app.get(
    '/api/v1/api-keys',
    { schema: { response: { 200: Type.Object({ data: Type.Array(ApiKeyReply) }) } }, config: forPeople },
    async (request) => ({ data: await listApiKeys(db, managed(sessionOf(request))) }),
  );

  app.post(
    '/api/v1/api-keys',
    {
      schema: { body: NewApiKey, response: { 200: Type.Object({ data: NewApiKeyReply }) } },
      config: { ...forPeople },
    },
    async (request) => {
      const principal = sessionOf(request);
      const { label, organizationAccess, allWorkspaces, workspacePermissions } = request.body;
      const { key, apiKey } = await createApiKey(context, principal, {
        organizationId: organizationOf(principal, request.body.organizationId),
        label,
        organizationAccess,
        reach: { allWorkspaces, workspacePermissions },
      });
      return { data: { ...key, apiKey } };
    },
  );

  app.delete(
    '/api/v1/api-keys/:id',
    {
      schema: {
        params: Type.Object({ id: Type.String() }),
        response: { 200: Type.Object({ data: ApiKeyReply }) },
      },
      config: { ...forPeople },
    },
    async (request) => {
      const { id } = request.params;
      const key = existing(await revokeApiKey(db, sessionOf(request), id), 'API Key', id);
      return { data: key };
    },
  );
};

function organizationOf(principal: SessionPrincipal, given: string | undefined): string {
  const ids = managed(principal);
  if (given !== undefined) {
    if (!ids.includes(given)) throw unauthorized();
    return given;
  }
  const [only, ...others] = ids;
  if (only === undefined || others.length > 0) {
    throw badRequest('organizationId must be provided by people with several organizations');
  }
  return only;
}
