/** Action classes on v3: a list for reading. */
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

const ActionClass = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: TextOrNull,
  type: Type.String(),
  key: TextOrNull,
});
export const v3ActionClassRoutes: Routes = async (app, { context }) => {
  const { db } = context;

  app.get(
    '/api/v3/action-classes',
    {
      schema: {
        querystring: WorkspaceListQuery,
        response: { 200: Type.Object({ data: Type.Array(ActionClass), meta: CursorMeta }) },
      },
      config: { refuses: ['forbidden'] },
    },
    async (request) => {
      const page = cursorPageFrom(request.query);
      const workspace = await readableWorkspace(context, request, request.query.workspaceId);
      const matching = db
        .selectFrom('actionClasses')
        .select(['id', 'name', 'description', 'type', 'key', 'createdAt'])
        .where('workspaceId', '=', workspace.id)
        // Built-in ones are older than v3 and not shown here.
        .where('type', '!=', 'automatic');
      return readCursorPage(matching, page);
    },
  );
};
