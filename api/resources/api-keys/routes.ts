/**
 * API keys, made and revoked by a logged-in owner or manager of an organization. A key itself is shown once, in the
 * reply that makes it.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { hashApiKey, newApiKey } from '#api/auth/api-key.ts';
import { sessionOf } from '#api/auth/plugin.ts';
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { badRequest, invalidFields, notFound, unauthorized } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { Id, OneOf } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { type ApiKey, deleteApiKey, findApiKey, insertApiKey, listApiKeys } from './store.ts';

const KEYS_PER_ORGANIZATION_MAX = 200;
const PERMISSIONS_MAX = 500;

const WorkspacePermission = Type.Object({
  workspaceId: Id,
  permission: OneOf(['read', 'write', 'manage'] as const),
});
const NewApiKey = Type.Object({
  label: Type.String({ minLength: 1, maxLength: 255 }),
  /** Needed only by members of several organizations. */
  organizationId: Type.Optional(Id),
  /** Unset: manage on every workspace of the organization. */
  workspacePermissions: Type.Optional(Type.Array(WorkspacePermission, { maxItems: PERMISSIONS_MAX })),
  organizationAccess: Type.Optional(
    Type.Object({ accessControl: Type.Object({ read: Type.Boolean(), write: Type.Boolean() }) }),
  ),
});

const shape = {
  id: Type.String(),
  organizationId: Type.String(),
  label: Type.String(),
  createdAt: Type.String(),
  createdBy: Type.Union([Type.String(), Type.Null()]),
  lastUsedAt: Type.Union([Type.String(), Type.Null()]),
  organizationAccess: Type.Object({
    accessControl: Type.Object({ read: Type.Boolean(), write: Type.Boolean() }),
  }),
  workspacePermissions: Type.Array(WorkspacePermission),
};
const ApiKeyReply = Type.Object(shape);
const NewApiKeyReply = Type.Object({ ...shape, apiKey: Type.String() });

const config = { credentials: 'session', acceptsKeyWithoutWorkspace: true } as const;

export const apiKeyRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, clock, random } = context;

  app.get(
    '/api/v1/api-keys',
    { schema: { response: { 200: Type.Object({ data: Type.Array(ApiKeyReply) }) } }, config },
    async (request) => ({ data: [...(await listApiKeys(db, managed(sessionOf(request))))].map(toReply) }),
  );

  app.post(
    '/api/v1/api-keys',
    { schema: { body: NewApiKey, response: { 200: Type.Object({ data: NewApiKeyReply }) } }, config },
    async (request) => {
      const principal = sessionOf(request);
      const { label, organizationAccess, workspacePermissions } = request.body;
      const organizationId = organizationOf(principal, request.body.organizationId);
      const apiKey = newApiKey(random);
      const key = await db.transaction().execute(async (trx) => {
        const keys = await listApiKeys(trx, [organizationId]);
        if (keys.length >= KEYS_PER_ORGANIZATION_MAX) {
          throw badRequest(
            `An organization has at most ${KEYS_PER_ORGANIZATION_MAX} keys; delete one that nobody uses`,
          );
        }
        const workspaces = await trx
          .selectFrom('workspaces')
          .select('id')
          .where('organizationId', '=', organizationId)
          .orderBy('id')
          .execute();
        const ids = workspaces.map(({ id }) => id);
        const made: ApiKey = {
          id: newId(random),
          organizationId,
          label: label.trim(),
          createdAt: toTimestamp(clock()),
          createdBy: principal.userId,
          lastUsedAt: null,
          organizationAccess: organizationAccess ?? { accessControl: { read: true, write: true } },
          workspacePermissions: permissionsFrom(workspacePermissions, ids),
        };
        if (made.label === '') throw invalidFields({ label: 'must have more than spaces' });
        await insertApiKey(trx, made, hashApiKey(apiKey));
        return made;
      });
      return { data: { ...toReply(key), apiKey } };
    },
  );

  app.delete(
    '/api/v1/api-keys/:id',
    {
      schema: {
        params: Type.Object({ id: Type.String() }),
        response: { 200: Type.Object({ data: ApiKeyReply }) },
      },
      config,
    },
    async (request) => {
      const { id } = request.params;
      const key = await findApiKey(db, managed(sessionOf(request)), id);
      if (key === null) throw notFound('API Key', id);
      await deleteApiKey(db, id);
      return { data: toReply(key) };
    },
  );
};

/** The organizations whose keys the user may see, make and revoke. @throws ApiError unauthorized when there are none */
function managed({ roles }: SessionPrincipal): readonly string[] {
  const ids = [...roles].filter(([, role]) => role !== 'member').map(([id]) => id);
  if (ids.length === 0) throw unauthorized();
  return ids;
}

function organizationOf(principal: SessionPrincipal, given: string | undefined): string {
  const ids = managed(principal);
  if (given !== undefined) {
    if (!ids.includes(given)) throw unauthorized();
    return given;
  }
  const [only, ...others] = ids;
  if (only === undefined || others.length > 0) {
    throw badRequest('organizationId must be provided by members of several organizations');
  }
  return only;
}

/** @param workspaceIds all of the organization */
function permissionsFrom(
  given: readonly { readonly workspaceId: string; readonly permission: Permission }[] | undefined,
  workspaceIds: readonly string[],
): readonly { readonly workspaceId: string; readonly permission: Permission }[] {
  if (given === undefined) return workspaceIds.map((workspaceId) => ({ workspaceId, permission: 'manage' }));
  const seen = new Set<string>();
  given.forEach(({ workspaceId }, i) => {
    const path = `workspacePermissions.${i}.workspaceId`;
    if (!workspaceIds.includes(workspaceId)) {
      throw invalidFields({ [path]: 'is no workspace of the organization' });
    }
    if (seen.has(workspaceId)) throw invalidFields({ [path]: 'is there twice' });
    seen.add(workspaceId);
  });
  return given;
}

function toReply(key: ApiKey) {
  return { ...key, workspacePermissions: [...key.workspacePermissions] };
}
