/**
 * Contact attribute keys on v1, and a list of them on v3.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { badRequest, notFound } from '#api/errors.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { v3List } from '#api/resources/workspaces/v3-list.ts';
import { Nullable, OneOf, scopeFields, TextOrNull } from '#api/schemas.ts';
import { deleteAttributeKey, findAttributeKey, listAttributeKeys } from './attribute-key-store.ts';
import { changeAttributeKey, checkedKey, createAttributeKey } from './attribute-key-write.ts';

const ALREADY_EXISTS = 'Attribute key already exists';

const LIST_MAX = 5_000;

const described = {
  name: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
  description: Type.Optional(Nullable(Type.String({ maxLength: 2_048 }))),
  dataType: Type.Optional(OneOf(['string', 'number', 'date'])),
};
const NewKey = Type.Object({ ...scopeFields, ...described, key: Type.String(), type: OneOf(['custom']) });
const KeyChange = Type.Object({ ...described, key: Type.Optional(Type.String()) });

const AttributeKeyReply = Type.Object({
  id: Type.String(),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  key: Type.String(),
  name: Type.String(),
  description: Type.String(),
  isUnique: Type.Boolean(),
  type: Type.String(),
  dataType: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

const V3AttributeKey = Type.Object({
  id: Type.String(),
  key: Type.String(),
  name: TextOrNull,
  description: TextOrNull,
  type: Type.String(),
  dataType: Type.String(),
});

export const contactAttributeKeyRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const keys = v1Resource(app, context, {
    url: '/api/v1/management/contact-attribute-keys',
    param: 'contactAttributeKeyId',
    type: 'Attribute Key',
    find: findAttributeKey,
    reply: AttributeKeyReply,
    toReplies: (found) => found,
  });

  keys.list(LIST_MAX, listAttributeKeys);

  keys.create({ body: NewKey, refuses: ['forbidden'] }, async (body, { id: workspaceId }) => {
    const { key, name, description, dataType } = body;
    const given = { workspaceId, key: checkedKey(key), name, description, dataType };
    return createAttributeKey(context, given, badRequest(ALREADY_EXISTS));
  });

  keys.read();

  keys.change({ body: KeyChange, refuses: ['bad_request'] }, async (body, { id }) => {
    const { name, description, key, dataType } = body;
    return changeAttributeKey(
      context,
      id,
      (stored) => {
        // Clients, segments and SDKs rely on the default keys.
        const isFixed = stored.type === 'default';
        return {
          name: name ?? stored.name,
          description,
          key: isFixed || key === undefined || key === stored.key ? stored.key : checkedKey(key),
          dataType: isFixed ? stored.dataType : (dataType ?? stored.dataType),
        };
      },
      { alreadyExists: badRequest(ALREADY_EXISTS), gone: notFound('Attribute Key', id) },
    );
  });

  keys.remove({ refuses: ['bad_request'] }, async ({ id, type }) => {
    if (type === 'default') throw badRequest('Default Contact Attribute Keys cannot be deleted');
    await deleteAttributeKey(db, id);
  });
};

export const v3AttributeKeyRoutes: Routes = async (app, { context }) => {
  v3List(app, context, '/api/v3/contact-attribute-keys', V3AttributeKey, (workspaceId) =>
    context.db
      .selectFrom('contactAttributeKeys')
      .select(['id', 'key', 'name', 'description', 'type', 'dataType', 'createdAt'])
      .where('workspaceId', '=', workspaceId),
  );
};
