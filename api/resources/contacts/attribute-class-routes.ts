/**
 * Attribute classes on v1: older clients know contact attribute keys by this name, and the key as `name`
 * (docs/api.md).
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { badRequest, invalidFields } from '#api/errors.ts';
import { type Shown, v1Resource } from '#api/resources/workspaces/resource.ts';
import { Nullable, OneOf, rowFields, scopeFields } from '#api/values/schemas.ts';
import { reservedProblem } from './attribute-key-rules.ts';
import {
  type AttributeKey,
  attributeKeys,
  changeAttributeKey,
  createAttributeKey,
  deleteAttributeKey,
} from './attribute-key-store.ts';

const ALREADY_EXISTS = 'Attribute class already exists';
/** Default keys that attribute classes show as built in. Older clients created the other two themselves. */
const automaticNames: ReadonlySet<string> = new Set(['userId', 'email', 'language']);

const Name = Type.String({ minLength: 1, maxLength: 255 });
const Description = Type.Optional(Nullable(Type.String({ maxLength: 2_048 })));
const NewClass = Type.Object({ ...scopeFields, name: Name, type: OneOf(['code']), description: Description });
const ClassChange = Type.Object({
  name: Type.Optional(Name),
  description: Description,
  archived: Type.Optional(Type.Boolean()),
});

const AttributeClassReply = Type.Object({
  ...rowFields,
  name: Type.String(),
  type: Type.String(),
  description: Nullable(Type.String()),
  archived: Type.Boolean(),
});

export const attributeClassRoutes: Routes = async (app, { context }) => {
  const resource = v1Resource(app, context, {
    url: '/api/v1/management/attribute-classes',
    param: 'attributeClassId',
    type: 'Attribute Class',
    rows: attributeKeys,
    reply: AttributeClassReply,
    toReplies: (keys) => keys.map(toAttributeClass),
  });

  resource.list();

  resource.create(NewClass, async (body, { id: workspaceId }) => {
    const given = { workspaceId, key: checkedName(body.name), description: body.description };
    return createAttributeKey(context, given, badRequest(ALREADY_EXISTS));
  });

  resource.read();

  resource.change(ClassChange, async (body, loaded) => {
    const { name, description, archived } = body;
    return changeAttributeKey(context, loaded, 'Attribute Class', badRequest(ALREADY_EXISTS), (stored) => {
      const isRenamed = name !== undefined && name !== stored.key;
      if (isRenamed && stored.type === 'default') {
        throw badRequest('Automatic Attribute Classes cannot be renamed');
      }
      return {
        key: isRenamed ? checkedName(name) : stored.key,
        description,
        isArchived: archived ?? stored.isArchived,
      };
    });
  });

  resource.remove(async ({ id, type }) => {
    if (type === 'default') throw badRequest('Automatic Attribute Classes cannot be deleted');
    return deleteAttributeKey(context.db, id);
  });
};

function checkedName(name: string): string {
  const problem = reservedProblem(name);
  if (problem !== null) throw invalidFields({ name: `The name ${problem}` });
  return name;
}

function toAttributeClass(key: Shown<AttributeKey>) {
  return {
    ...key,
    name: key.key,
    type: automaticNames.has(key.key) && key.type === 'default' ? 'automatic' : 'code',
    description: key.description === '' ? null : key.description,
    archived: key.isArchived,
  };
}
