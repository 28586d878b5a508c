/**
 * Tags on v3. No route creates tags; databases of earlier versions have them.
 *
 * Callers: sessions. The list needs the right to read the workspace, everything else to write.
 */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { may } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { invalidFields } from '#api/errors.ts';
import type { Tag } from '#api/resources/responses/store.ts';
import { outOfReach, v3Workspace } from '#api/resources/workspaces/scope.ts';
import { Id } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { deleteTag, mergeTag } from './remove.ts';
import { readTagName, renameTag, tags, withCounts } from './store.ts';

const url = '/api/v3/tags';
/** The list has no pages. */
const ALL = { limit: 1_000, skip: 0 };
const Params = Type.Object({ tagId: Id });
const Item = Type.Object({
  id: Type.String(),
  name: Type.String(),
  workspaceId: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  count: Type.Integer({ description: 'Responses that have it.' }),
});
const IdReply = Type.Object({ data: Type.Object({ id: Type.String() }) });
const closed = { additionalProperties: false };
const config = { credentials: 'session', refuses: ['forbidden'] } as const;

export const v3TagRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;

  app.get(
    url,
    {
      schema: {
        querystring: Type.Object({ workspaceId: Id }, closed),
        response: { 200: Type.Object({ data: Type.Array(Item) }) },
      },
      config,
    },
    async (request) => {
      const workspace = await v3Workspace(context, request, request.query.workspaceId, 'read');
      return { data: await withCounts(db, await tags.list(db, [workspace.id], ALL)) };
    },
  );

  app.patch(
    `${url}/:tagId`,
    {
      schema: {
        params: Params,
        body: Type.Object({ name: Type.String() }, closed),
        response: { 200: Type.Object({ data: Item }) },
      },
      config: { ...config, refuses: ['forbidden', 'unprocessable_content'] },
    },
    async (request) => {
      const name = readTagName(request.body.name);
      const stored = await writableTag(request, request.params.tagId);
      const renamed = { ...stored, name, updatedAt: toTimestamp(clock()) };
      const [item] = (await renameTag(db, renamed)) ? await withCounts(db, [renamed]) : [];
      if (item === undefined) throw outOfReach();
      return { data: item };
    },
  );

  app.delete(
    `${url}/:tagId`,
    { schema: { params: Params, response: { 200: IdReply } }, config },
    async (request) => {
      const { id } = await writableTag(request, request.params.tagId);
      if (!(await deleteTag(db, id))) throw outOfReach();
      return { data: { id } };
    },
  );

  app.post(
    `${url}/:tagId/merge`,
    {
      schema: {
        params: Params,
        body: Type.Object({ newTagId: Id }, closed),
        response: { 200: IdReply },
      },
      config,
    },
    async (request) => {
      const { newTagId } = request.body;
      if (newTagId === request.params.tagId) {
        throw invalidFields({ newTagId: 'must be another tag than the one that is merged' });
      }
      const { id } = await writableTag(request, request.params.tagId);
      await writableTag(request, newTagId);
      if (!(await mergeTag(db, id, newTagId))) throw outOfReach();
      return { data: { id: newTagId } };
    },
  );

  async function writableTag(request: FastifyRequest, id: string): Promise<Tag> {
    const tag = await tags.find(db, id);
    if (tag === null || !may(principalOf(request), tag.workspaceId, 'write')) throw outOfReach();
    return tag;
  }
};
