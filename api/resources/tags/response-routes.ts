/**
 * The tags of a response on v1. Formbricks has no such routes. A tag that the workspace does not have is
 * created when a response gets it.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST to write, DELETE to manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import { RESPONSE_TAGS_MAX, TAGS_MAX } from '#api/content-limits.ts';
import type { Routes } from '#api/context.ts';
import { hasManyWriters, lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, forbidden, notFound } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { newId } from '#api/ids.ts';
import { TagReply } from '#api/resources/responses/schema.ts';
import { findResponse, type Tag } from '#api/resources/responses/store.ts';
import { findShown, workspaceRow } from '#api/resources/workspaces/row.ts';
import { withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import {
  countTags,
  findTag,
  findTagByName,
  insertTag,
  listTags,
  listTagsOfResponse,
  readTagName,
  tagResponse,
  untagResponse,
} from './store.ts';

const LIST_MAX = 1_000;

const url = '/api/v1/management/responses/:responseId/tags';
const Params = Type.Object({ responseId: Type.String() });
const NewTag = Type.Object(
  { name: Type.Optional(Type.String()), tagId: Type.Optional(Type.String()) },
  { description: 'Either `name`, of a tag that need not exist yet, or `tagId`.' },
);
const many = { 200: Type.Object({ data: Type.Array(TagReply) }) };
const one = { 200: Type.Object({ data: TagReply }) };

export const responseTagRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const responses = workspaceRow({
    db,
    type: 'Response',
    param: 'responseId',
    find: findShown(findResponse),
  });

  app.get(
    '/api/v1/management/tags',
    {
      schema: {
        querystring: ListQuery,
        response: {
          200: Type.Object({
            data: Type.Array(Type.Object({ ...TagReply.properties, count: Type.Integer() })),
          }),
        },
      },
    },
    async (request, reply) => {
      const workspaceIds = readableWorkspaces(request);
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listTags(db, workspaceIds, page),
      );
      return { data: await withEnvironmentIds(db, found) };
    },
  );

  app.get(url, { schema: { params: Params, response: many }, onRequest: responses.load }, async (request) => {
    const { environmentId, id } = responses.of(request);
    return { data: (await listTagsOfResponse(db, id)).map((tag) => ({ ...tag, environmentId })) };
  });

  app.post(
    url,
    {
      schema: { params: Params, body: NewTag, response: one },
      config: { refuses: ['bad_request', 'forbidden'] },
      onRequest: responses.load,
    },
    async (request) => {
      const { environmentId, id, workspaceId } = responses.of(request);
      const { name, tagId } = request.body;
      if ((name === undefined) === (tagId === undefined)) {
        throw badRequest('Give either the name of a tag, or the tagId of one that exists');
      }
      const read = name === undefined ? null : readTagName(name);
      const tag = await db.transaction().execute(async (trx) => {
        const wanted =
          read === null
            ? await findOf(trx, workspaceId, tagId ?? '')
            : await findOrCreate(trx, workspaceId, read);
        await lockRow(trx, 'responses', id);
        if ((await findResponse(trx, id)) === null) throw notFound('Response', id);
        await tagResponse(trx, id, wanted.id);
        if ((await listTagsOfResponse(trx, id)).length > RESPONSE_TAGS_MAX) {
          throw forbidden(`A response can have ${RESPONSE_TAGS_MAX} tags; remove one first`);
        }
        return wanted;
      });
      return { data: { ...tag, environmentId } };
    },
  );

  app.delete(
    `${url}/:tagId`,
    {
      schema: { params: Type.Object({ responseId: Type.String(), tagId: Type.String() }), response: one },
      onRequest: responses.load,
    },
    async (request) => {
      const { environmentId, id, workspaceId } = responses.of(request);
      const tag = await findOf(db, workspaceId, request.params.tagId);
      if (!(await untagResponse(db, id, tag.id))) throw notFound('Tag', tag.id);
      return { data: { ...tag, environmentId } };
    },
  );

  async function findOrCreate(trx: Database, workspaceId: string, name: string): Promise<Tag> {
    const known = await findTagByName(trx, workspaceId, name);
    if (known !== null) return known;
    if (hasManyWriters(trx)) {
      await lockRow(trx, 'workspaces', workspaceId);
      const made = await findTagByName(trx, workspaceId, name);
      if (made !== null) return made;
    }
    if ((await countTags(trx, workspaceId)) >= TAGS_MAX) {
      throw forbidden(`A workspace can have ${TAGS_MAX} tags; merge or delete some that are not used`);
    }
    const now = toTimestamp(clock());
    const made: Tag = { id: newId(random), workspaceId, name, createdAt: now, updatedAt: now };
    await insertTag(trx, made);
    return made;
  }

  async function findOf(trx: Database, workspaceId: string, id: string): Promise<Tag> {
    const tag = await findTag(trx, id);
    if (tag?.workspaceId !== workspaceId) throw notFound('Tag', id);
    return tag;
  }
};
