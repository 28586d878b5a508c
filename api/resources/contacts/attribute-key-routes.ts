/**
 * Contact attribute keys on v1 and v2, and a list of them on v3. v1 lets clients change the name and the description of
 * default keys, v2 does not.
 *
 * Callers: API keys, and on v1 and v3 sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE
 * to manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, conflict } from '#api/errors.ts';
import { type Shown, v1Resource, v2Resource } from '#api/resources/workspaces/resource.ts';
import { v2BodyWorkspace, v2Workspace } from '#api/resources/workspaces/scope.ts';
import { v3List } from '#api/resources/workspaces/v3-list.ts';
import { Id, Nullable, OneOf, rowFields, scopeFields, TextOrNull } from '#api/values/schemas.ts';
import {
  type AttributeKey,
  attributeKeys,
  changeAttributeKey,
  checkedKey,
  createAttributeKey,
  deleteAttributeKey,
} from './attribute-key-store.ts';

const ALREADY_EXISTS = 'Attribute key already exists';
const V2_ALREADY_EXISTS = 'A contact attribute key with this key already exists';

const described = {
  name: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
  description: Type.Optional(Nullable(Type.String({ maxLength: 2_048 }))),
};
const dataType = Type.Optional(OneOf(['string', 'number', 'date']));
const NewKey = Type.Object({
  ...scopeFields,
  ...described,
  dataType,
  key: Type.String(),
  type: OneOf(['custom']),
});
const KeyChange = Type.Object({ ...described, dataType, key: Type.Optional(Type.String()) });
const NewV2Key = Type.Object({ ...scopeFields, key: Type.String(), ...described, dataType });
/** Absent fields are not changed. The key and its type cannot change. */
const V2KeyChange = Type.Object(described);

const keyFields = {
  ...rowFields,
  key: Type.String(),
  isUnique: Type.Boolean(),
  type: Type.String(),
  dataType: Type.String(),
};
const KeyReply = Type.Object({ ...keyFields, name: Type.String(), description: Type.String() });
const V2KeyReply = Type.Object({ ...keyFields, name: TextOrNull, description: TextOrNull });
const V3KeyReply = Type.Object({
  id: Type.String(),
  key: Type.String(),
  name: TextOrNull,
  description: TextOrNull,
  type: Type.String(),
  dataType: Type.String(),
});

export const contactAttributeKeyRoutes: Routes = async (app, { context }) => {
  const resource = v1Resource(app, context, {
    url: '/api/v1/management/contact-attribute-keys',
    param: 'contactAttributeKeyId',
    type: 'Attribute Key',
    rows: attributeKeys,
    reply: KeyReply,
    toReplies: (found) => found,
  });

  resource.list();

  resource.create(NewKey, async (body, { id: workspaceId }) => {
    const { key, name, description, dataType } = body;
    const given = { workspaceId, key: checkedKey(key), name, description, dataType };
    return createAttributeKey(context, given, badRequest(ALREADY_EXISTS));
  });

  resource.read();

  resource.change(KeyChange, async (body, loaded) => {
    const { name, description, key, dataType } = body;
    return changeAttributeKey(context, loaded, 'Attribute Key', badRequest(ALREADY_EXISTS), (stored) => {
      // Clients, segments and SDKs rely on the default keys.
      const isFixed = stored.type === 'default';
      return {
        name: name ?? stored.name,
        description,
        key: isFixed || key === undefined || key === stored.key ? stored.key : checkedKey(key),
        dataType: isFixed ? stored.dataType : (dataType ?? stored.dataType),
      };
    });
  });

  resource.remove(async ({ id, type }) => {
    if (type === 'default') throw badRequest('Default Contact Attribute Keys cannot be deleted');
    return deleteAttributeKey(context.db, id);
  });
};

export const v2AttributeKeyRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const resource = v2Resource(app, context, {
    url: '/api/v2/management/contact-attribute-keys',
    param: 'id',
    type: 'Attribute Key',
    rows: attributeKeys,
    reply: V2KeyReply,
    toReplies: (found) => found.map(toV2Reply),
  });
  const alreadyExists = conflict(V2_ALREADY_EXISTS, { key: V2_ALREADY_EXISTS });

  resource.list(
    { workspaceId: Type.Optional(Id), environmentId: Type.Optional(Id) },
    attributeKeys,
    async ({ workspaceId, environmentId }, request) => {
      const scope = workspaceId ?? environmentId;
      const workspaceIds =
        scope === undefined ? readableWorkspaces(request) : [(await v2Workspace(context, request, scope)).id];
      return { matching: db.selectFrom('contactAttributeKeys').where('workspaceId', 'in', workspaceIds) };
    },
  );

  resource.create(NewV2Key, async (body, request) => {
    const { name, description, dataType } = body;
    const key = checkedKey(body.key);
    const { id: workspaceId } = await v2BodyWorkspace(context, request);
    const given = { workspaceId, key, name, description, dataType };
    return createAttributeKey(context, given, alreadyExists);
  });

  resource.read();

  resource.change(V2KeyChange, async ({ name, description }, loaded) =>
    changeAttributeKey(context, loaded, 'Attribute Key', alreadyExists, (stored) => {
      refuseFixed(stored, 'changed');
      return { name: name ?? stored.name, description };
    }),
  );

  resource.remove(async (stored) => {
    refuseFixed(stored, 'deleted');
    return deleteAttributeKey(db, stored.id);
  });
};

export const v3AttributeKeyRoutes: Routes = async (app, { context }) => {
  v3List(app, context, '/api/v3/contact-attribute-keys', V3KeyReply, (workspaceId) =>
    context.db
      .selectFrom('contactAttributeKeys')
      .select(['id', 'key', 'name', 'description', 'type', 'dataType', 'createdAt'])
      .where('workspaceId', '=', workspaceId),
  );
};

/** Clients, segments and SDKs rely on these keys. @throws ApiError bad_request */
function refuseFixed({ type, isUnique }: AttributeKey, what: 'changed' | 'deleted'): void {
  if (type !== 'default' && !isUnique) return;
  const problem = `Default and unique keys cannot be ${what}`;
  throw badRequest(problem, { contactAttributeKey: problem });
}

/** Converts a key to the format of v2, which shows an empty description as null. */
function toV2Reply({ isArchived: _, ...key }: Shown<AttributeKey>) {
  return { ...key, description: key.description === '' ? null : key.description };
}
