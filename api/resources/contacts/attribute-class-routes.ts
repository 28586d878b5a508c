/**
 * Attribute classes on the management API: the older view on contact attribute keys, where the key is called the name
 * (docs/api.md). Needs a key; rights go by method.
 */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, invalidFields, notFound } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { Nullable, OneOf, scopeFields } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { reservedProblem } from './attribute-key-rules.ts';
import {
  type AttributeKey,
  deleteAttributeKey,
  findAttributeKey,
  listAttributeKeys,
} from './attribute-key-store.ts';
import { changeAttributeKey, createAttributeKey, customKey } from './attribute-key-write.ts';

const ALREADY_EXISTS = 'Attribute class already exists';
/** Default keys that the older view knows as built in; its other two default keys were once made by code. */
const automaticNames: ReadonlySet<string> = new Set(['userId', 'email', 'language']);

const LIST_MAX = 5_000;

const Params = Type.Object({ attributeClassId: Type.String() });
const Name = Type.String({ minLength: 1, maxLength: 255 });
const Description = Type.Optional(Nullable(Type.String({ maxLength: 2_048 })));
const NewClass = Type.Object({ ...scopeFields, name: Name, type: OneOf(['code']), description: Description });
const ClassChange = Type.Object({
  name: Type.Optional(Name),
  description: Description,
  archived: Type.Optional(Type.Boolean()),
});

const AttributeClassReply = Type.Object({
  id: Type.String(),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  name: Type.String(),
  type: Type.String(),
  description: Nullable(Type.String()),
  archived: Type.Boolean(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});
const one = { 200: Type.Object({ data: AttributeClassReply }) };

export const attributeClassRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const url = '/api/v1/management/attribute-classes';
  const oneUrl = `${url}/:attributeClassId`;
  const classes = workspaceRow({
    db,
    type: 'Attribute Class',
    param: 'attributeClassId',
    find: findAttributeKey,
  });

  app.get(
    url,
    {
      schema: {
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(AttributeClassReply) }) },
      },
    },
    async (request, reply) => {
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listAttributeKeys(db, workspaceIds, page),
      );
      return { data: (await withEnvironmentIds(db, found)).map(toAttributeClass) };
    },
  );

  app.post(
    url,
    {
      schema: { body: NewClass, response: one },
      config: { refuses: ['forbidden'] },
      preValidation: loadBodyWorkspace(context),
    },
    async (request) => {
      const { id: workspaceId, environmentId } = workspaceOf(request);
      const { name, description } = request.body;
      const fields = { workspaceId, key: checkedName(name), description: description ?? '' };
      const made = customKey(fields, toTimestamp(clock()), random);
      await createAttributeKey(db, made, badRequest(ALREADY_EXISTS));
      return { data: toAttributeClass({ ...made, environmentId }) };
    },
  );

  app.get(
    oneUrl,
    { schema: { params: Params, response: one }, onRequest: classes.load },
    async (request) => ({ data: toAttributeClass(classes.of(request)) }),
  );

  app.put(
    oneUrl,
    {
      schema: { params: Params, body: ClassChange, response: one },
      config: { refuses: ['bad_request'] },
      onRequest: classes.load,
    },
    async (request) => {
      const { id, environmentId } = classes.of(request);
      const { name, description, archived } = request.body;
      const changed = await changeAttributeKey(
        db,
        id,
        (stored) => {
          const isRenamed = name !== undefined && name !== stored.key;
          if (isRenamed && stored.type === 'default') {
            throw badRequest('Automatic Attribute Classes cannot be renamed');
          }
          return {
            ...stored,
            key: isRenamed ? checkedName(name) : stored.key,
            description: description === undefined ? stored.description : (description ?? ''),
            isArchived: archived ?? stored.isArchived,
            updatedAt: toTimestamp(clock()),
          };
        },
        { alreadyExists: badRequest(ALREADY_EXISTS), gone: notFound('Attribute Class', id) },
      );
      return { data: toAttributeClass({ ...changed, environmentId }) };
    },
  );

  app.delete(
    oneUrl,
    {
      schema: { params: Params, response: one },
      config: { refuses: ['bad_request'] },
      onRequest: classes.load,
    },
    async (request) => {
      const stored = classes.of(request);
      if (stored.type === 'default') throw badRequest('Automatic Attribute Classes cannot be deleted');
      await deleteAttributeKey(db, stored.id);
      return { data: toAttributeClass(stored) };
    },
  );
};

function checkedName(name: string): string {
  const problem = reservedProblem(name);
  if (problem !== null) throw invalidFields({ name: `The name ${problem}` });
  return name;
}

function toAttributeClass(key: AttributeKey & { readonly environmentId: string }) {
  return {
    id: key.id,
    environmentId: key.environmentId,
    workspaceId: key.workspaceId,
    name: key.key,
    type: automaticNames.has(key.key) && key.type === 'default' ? 'automatic' : 'code',
    description: key.description === '' ? null : key.description,
    archived: key.isArchived,
    createdAt: key.createdAt,
    updatedAt: key.updatedAt,
  };
}
