/**
 * Uploads of respondents: private files, no key. The gateway counts grants per address: grants, not stored files.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { ClientGrantRequest, checkFile, checkSurvey, Grant, grantUpload } from './grant.ts';

const WorkspaceParams = Type.Object({ workspaceId: Type.String() });

export const clientGrantRoutes: Routes = async (app, { context }) => {
  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/storage`,
      {
        schema: { params: WorkspaceParams, body: ClientGrantRequest, response: { 200: Grant } },
        config: { refuses: ['bad_request', 'not_found'] },
        onRequest: loadPathWorkspace(context),
      },
      async (request) => {
        const { id: workspaceId } = workspaceOf(request);
        const { surveyId, elementId = null } = request.body;
        const file = checkFile(request.body);
        const bytesMax = await checkSurvey(context, workspaceId, request.body, file.extension);
        return grantUpload(context, file, { workspaceId, access: 'private', surveyId, elementId, bytesMax });
      },
    );
  }
};
