/**
 * Contact attribute keys on v1 and v2, and attribute classes on v1: older clients know the keys by this name, and the
 * key as `name`.
 *
 * Callers: API keys, and on v1 sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to
 * manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { type ApiError, badRequest, conflict, invalidFields } from '#api/errors.ts';
import { workspaceResource } from '#api/resources/workspaces/resource.ts';
import { Nullable, OneOf, rowFields, scopeFields, TextOrNull } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { attributeKeys, deleteAttributeKey, isNewKey, KEY_RULE, newKey } from './keys.ts';

/** Default keys that attribute classes show as built in. Older clients created the other two themselves. */
const automaticNames: ReadonlySet<string> = new Set(['userId', 'email', 'language']);

const description = Type.Optional(Nullable(Type.String({ maxLength: 2_048 })));
const described = {
  name: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
  description,
};
const NewKey = Type.Object({
  ...scopeFields,
  ...described,
  key: Type.String(),
  type: Type.Optional(OneOf(['custom'])),
  dataType: Type.Optional(OneOf(['string', 'number', 'date'])),
});
/** Absent fields are not changed. The key and its types cannot change, because segments and SDKs rely on them. */
const KeyChange = Type.Object(described);
const NewClass = Type.Object({
  ...scopeFields,
  name: Type.String({ minLength: 1, maxLength: 255 }),
  type: OneOf(['code']),
  description,
});

const KeyReply = Type.Object({
  ...rowFields,
  key: Type.String(),
  isUnique: Type.Boolean(),
  type: Type.String(),
  dataType: Type.String(),
  name: Type.String(),
  description: TextOrNull,
});
const ClassReply = Type.Object({
  ...rowFields,
  name: Type.String(),
  type: Type.String(),
  description: TextOrNull,
  archived: Type.Boolean(),
});

export const contactAttributeKeyRoutes = keyRoutes('v1');
export const v2AttributeKeyRoutes = keyRoutes('v2');

function keyRoutes(version: 'v1' | 'v2'): Routes {
  const isV1 = version === 'v1';
  const problem = 'A contact attribute key with this key already exists';
  const taken = isV1 ? badRequest('Attribute key already exists') : conflict(problem, { key: problem });
  return async (app, { context }) => {
    const { db, clock, random } = context;
    const resource = workspaceResource(app, context, {
      version,
      url: `/api/${version}/management/contact-attribute-keys`,
      param: isV1 ? 'contactAttributeKeyId' : 'id',
      type: 'Attribute Key',
      rows: attributeKeys,
      reply: KeyReply,
      toReplies: (found) =>
        isV1 ? found : found.map((key) => ({ ...key, description: key.description || null })),
    });

    if (isV1) resource.list();
    else
      resource.listPages({}, attributeKeys, async (_, request) =>
        db.selectFrom('contactAttributeKeys').where('workspaceId', 'in', readableWorkspaces(request)),
      );

    resource.create(NewKey, ({ key, name, description, dataType }, { id }) => {
      if (!isNewKey(key)) throw invalidFields({ key: `The key ${KEY_RULE}` });
      const given = { workspaceId: id, key, name, description, dataType };
      return unlessKeyTaken(taken, () =>
        attributeKeys.create(db, newKey(given, toTimestamp(clock()), random)),
      );
    });

    resource.read();

    resource.change(KeyChange, ({ name, description }, loaded) =>
      attributeKeys.change(context, loaded, 'Attribute Key', (stored) => ({
        name: name ?? stored.name,
        description: description === undefined ? stored.description : (description ?? ''),
      })),
    );

    resource.remove(async ({ id, type }) => {
      if (type === 'default') throw kept('Default Contact Attribute Keys cannot be deleted');
      return deleteAttributeKey(db, id);
    });
  };
}

export const attributeClassRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const resource = workspaceResource(app, context, {
    version: 'v1',
    url: '/api/v1/management/attribute-classes',
    param: 'attributeClassId',
    type: 'Attribute Class',
    rows: attributeKeys,
    reply: ClassReply,
    toReplies: (found) =>
      found.map((key) => ({
        ...key,
        name: key.key,
        type: automaticNames.has(key.key) ? 'automatic' : 'code',
        description: key.description || null,
        archived: false,
      })),
  });

  resource.list();

  resource.create(NewClass, ({ name, description }, { id }) =>
    unlessKeyTaken(badRequest('Attribute class already exists'), () =>
      attributeKeys.create(
        db,
        newKey({ workspaceId: id, key: name, description }, toTimestamp(clock()), random),
      ),
    ),
  );

  resource.read();

  resource.remove(async ({ id, type }) => {
    if (type === 'default') throw kept('Automatic Attribute Classes cannot be deleted');
    return deleteAttributeKey(db, id);
  });
};

/** Clients, segments and SDKs rely on the default keys. */
function kept(problem: string): ApiError {
  return badRequest(problem, { contactAttributeKey: problem });
}

function unlessKeyTaken<T>(taken: ApiError, write: () => Promise<T>): Promise<T> {
  return unlessTaken(['contactAttributeKeys.workspaceId', 'contactAttributeKeys.key'], taken, write);
}
