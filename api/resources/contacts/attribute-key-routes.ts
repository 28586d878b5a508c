/** Contact attribute keys on the management API. Needs a key; rights go by method. */
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
import { keyProblem, titleOf } from './attribute-key-rules.ts';
import { deleteAttributeKey, findAttributeKey, listAttributeKeys } from './attribute-key-store.ts';
import { changeAttributeKey, createAttributeKey, customKey } from './attribute-key-write.ts';

const ALREADY_EXISTS = 'Attribute key already exists';

const LIST_MAX = 5_000;

const Params = Type.Object({ contactAttributeKeyId: Type.String() });
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
const one = { 200: Type.Object({ data: AttributeKeyReply }) };

export const contactAttributeKeyRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const url = '/api/v1/management/contact-attribute-keys';
  const oneUrl = `${url}/:contactAttributeKeyId`;
  const keys = workspaceRow({
    db,
    type: 'Attribute Key',
    param: 'contactAttributeKeyId',
    find: findAttributeKey,
  });

  app.get(
    url,
    {
      schema: {
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(AttributeKeyReply) }) },
      },
    },
    async (request, reply) => {
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listAttributeKeys(db, workspaceIds, page),
      );
      return { data: [...(await withEnvironmentIds(db, found))] };
    },
  );

  app.post(
    url,
    {
      schema: { body: NewKey, response: one },
      config: { refuses: ['forbidden'] },
      preValidation: loadBodyWorkspace(context),
    },
    async (request) => {
      const { id: workspaceId, environmentId } = workspaceOf(request);
      const { key, name, description, dataType = 'string' } = request.body;
      const fields = {
        workspaceId,
        key: checkedKey(key),
        name: name ?? titleOf(key),
        description: description ?? '',
        dataType,
      };
      const made = customKey(fields, toTimestamp(clock()), random);
      await createAttributeKey(db, made, badRequest(ALREADY_EXISTS));
      return { data: { ...made, environmentId } };
    },
  );

  app.get(oneUrl, { schema: { params: Params, response: one }, onRequest: keys.load }, async (request) => ({
    data: keys.of(request),
  }));

  app.put(
    oneUrl,
    {
      schema: { params: Params, body: KeyChange, response: one },
      config: { refuses: ['bad_request'] },
      onRequest: keys.load,
    },
    async (request) => {
      const { id, environmentId } = keys.of(request);
      const { name, description, key, dataType } = request.body;
      const changed = await changeAttributeKey(
        db,
        id,
        (stored) => {
          // What clients, segments and the SDKs rely on stays as it is.
          const isFixed = stored.type === 'default';
          return {
            ...stored,
            name: name ?? stored.name,
            description: description === undefined ? stored.description : (description ?? ''),
            key: isFixed || key === undefined || key === stored.key ? stored.key : checkedKey(key),
            dataType: isFixed ? stored.dataType : (dataType ?? stored.dataType),
            updatedAt: toTimestamp(clock()),
          };
        },
        { alreadyExists: badRequest(ALREADY_EXISTS), gone: notFound('Attribute Key', id) },
      );
      return { data: { ...changed, environmentId } };
    },
  );

  app.delete(
    oneUrl,
    { schema: { params: Params, response: one }, config: { refuses: ['bad_request'] }, onRequest: keys.load },
    async (request) => {
      const stored = keys.of(request);
      if (stored.type === 'default') throw badRequest('Default Contact Attribute Keys cannot be deleted');
      await deleteAttributeKey(db, stored.id);
      return { data: stored };
    },
  );
};

function checkedKey(key: string): string {
  const problem = keyProblem(key);
  if (problem !== null) throw invalidFields({ key: `The key ${problem}` });
  return key;
}
