/**
 * Contact attribute keys on v2.
 *
 * Callers: API keys. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, conflict, notFound } from '#api/errors.ts';
import { ListMeta, listQuery, pageFrom, readV2Page } from '#api/http/v2-pagination.ts';
import { v2Resource } from '#api/resources/workspaces/resource.ts';
import { v2BodyWorkspace, v2Workspace } from '#api/resources/workspaces/scope.ts';
import { type Shown, withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { Id, Nullable, OneOf, scopeFields } from '#api/schemas.ts';
import {
  type AttributeKey,
  deleteAttributeKey,
  findAttributeKey,
  findAttributeKeys,
} from './attribute-key-store.ts';
import { changeAttributeKey, checkedKey, createAttributeKey } from './attribute-key-write.ts';

const url = '/api/v2/management/contact-attribute-keys';

const described = {
  name: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
  description: Type.Optional(Nullable(Type.String({ maxLength: 2_048 }))),
};
const NewKey = Type.Object({
  ...scopeFields,
  key: Type.String(),
  ...described,
  dataType: Type.Optional(OneOf(['string', 'number', 'date'])),
});
/** Absent fields are not changed. The key and its type cannot change. */
const KeyChange = Type.Object(described);

const KeyReply = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  isUnique: Type.Boolean(),
  key: Type.String(),
  name: Nullable(Type.String()),
  description: Nullable(Type.String()),
  type: Type.String(),
  dataType: Type.String(),
  workspaceId: Type.String(),
  environmentId: Type.String(),
});

export const v2AttributeKeyRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const keys = v2Resource(app, context, {
    url,
    param: 'id',
    type: 'Attribute Key',
    find: findAttributeKey,
    reply: KeyReply,
    toReplies: (found) => found.map(toReply),
  });

  app.get(
    url,
    {
      schema: {
        querystring: Type.Object({
          ...listQuery,
          workspaceId: Type.Optional(Id),
          environmentId: Type.Optional(Id),
        }),
        response: { 200: Type.Object({ data: Type.Array(KeyReply), meta: ListMeta }) },
      },
      config: { refuses: ['bad_request', 'not_found', 'forbidden'] },
    },
    async (request) => {
      const { workspaceId, environmentId } = request.query;
      const page = pageFrom(request.query);
      const scope = workspaceId ?? environmentId;
      const workspaceIds =
        scope === undefined ? readableWorkspaces(request) : [(await v2Workspace(context, request, scope)).id];
      const matching = db.selectFrom('contactAttributeKeys').where('workspaceId', 'in', workspaceIds);
      const { data, meta } = await readV2Page(matching, page, (ids) => findAttributeKeys(db, ids));
      return { data: (await withEnvironmentIds(db, data)).map(toReply), meta };
    },
  );

  app.post(
    url,
    {
      schema: { body: NewKey, response: { 201: keys.one } },
      config: { refuses: ['bad_request', 'not_found', 'forbidden', 'conflict'] },
    },
    async (request, reply) => {
      const { name, description, dataType } = request.body;
      const key = checkedKey(request.body.key);
      const { id: workspaceId, environmentId } = await v2BodyWorkspace(context, request);
      const given = { workspaceId, key, name, description, dataType };
      const made = await createAttributeKey(context, given, alreadyExists());
      return reply.code(201).send(await keys.show({ ...made, environmentId }));
    },
  );

  keys.read();

  keys.change({ body: KeyChange, refuses: ['bad_request'] }, async ({ name, description }, { id }) =>
    changeAttributeKey(
      context,
      id,
      (stored) => {
        refuseFixed(stored, 'changed');
        return { name: name ?? stored.name, description };
      },
      { alreadyExists: alreadyExists(), gone: notFound('Attribute Key', id) },
    ),
  );

  keys.remove({ refuses: ['bad_request'] }, async (stored) => {
    refuseFixed(stored, 'deleted');
    await deleteAttributeKey(db, stored.id);
  });
};

function alreadyExists() {
  const problem = 'A contact attribute key with this key already exists';
  return conflict(problem, { key: problem });
}

/** Clients, segments and SDKs rely on these keys. @throws ApiError bad_request */
function refuseFixed({ type, isUnique }: AttributeKey, what: 'changed' | 'deleted'): void {
  if (type !== 'default' && !isUnique) return;
  const problem = `Default and unique keys cannot be ${what}`;
  throw badRequest(problem, { contactAttributeKey: problem });
}

/** Converts a key to the format of v2, which shows an empty description as null. */
function toReply({ isArchived: _, ...key }: Shown<AttributeKey>) {
  return { ...key, description: key.description === '' ? null : key.description };
}
