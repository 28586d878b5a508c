/**
 * Permissions to upload a file.
 *
 * Callers: anybody, for private files of a survey, which the gateway limits per address. API keys and sessions with
 * the right to write, for public files; the gateway limits keys, the application sessions.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { loadBodyWorkspace, loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import {
  ClientGrantRequest,
  checkFile,
  checkSurvey,
  Grant,
  grantUpload,
  ManagementGrantRequest,
  PUBLIC_BYTES_MAX,
} from './grant.ts';

export const clientGrantRoutes: Routes = async (app, { context }) => {
  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/storage`,
      {
        schema: {
          summary: 'Ask for an upload: an address and the form fields that allow it',
          params: Type.Object({ workspaceId: Type.String() }),
          body: ClientGrantRequest,
          response: { 200: Grant },
        },
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

export const managementGrantRoutes: Routes = async (app, { context }) => {
  app.post(
    '/api/v1/management/storage',
    {
      schema: {
        summary: 'Ask for an upload: an address and the form fields that allow it',
        body: ManagementGrantRequest,
        response: { 200: Grant },
      },
      config: { limit: 'storage.upload' },
      preValidation: loadBodyWorkspace(context),
    },
    async (request) =>
      grantUpload(context, checkFile(request.body), {
        workspaceId: workspaceOf(request).id,
        access: 'public',
        surveyId: null,
        elementId: null,
        bytesMax: PUBLIC_BYTES_MAX,
      }),
  );
};
