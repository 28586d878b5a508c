/** Contact attribute keys on v3: a list for reading. */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import {
  CursorMeta,
  cursorPageFrom,
  readCursorPage,
  TextOrNull,
  WorkspaceListQuery,
} from '#api/http/workspace-list.ts';
import { readableWorkspace } from '#api/resources/workspaces/v3-access.ts';

const AttributeKey = Type.Object({
  id: Type.String(),
  key: Type.String(),
  name: TextOrNull,
  description: TextOrNull,
  type: Type.String(),
  dataType: Type.String(),
});

export const v3AttributeKeyRoutes: Routes = async (app, { context }) => {
  const { db } = context;

  app.get(
    '/api/v3/contact-attribute-keys',
    {
      schema: {
        querystring: WorkspaceListQuery,
        response: { 200: Type.Object({ data: Type.Array(AttributeKey), meta: CursorMeta }) },
      },
      config: { refuses: ['forbidden'] },
    },
    async (request) => {
      const page = cursorPageFrom(request.query);
      const workspace = await readableWorkspace(context, request, request.query.workspaceId);
      const matching = db
        .selectFrom('contactAttributeKeys')
        .select(['id', 'key', 'name', 'description', 'type', 'dataType', 'createdAt'])
        .where('workspaceId', '=', workspace.id);
      return readCursorPage(matching, page);
    },
  );
};
