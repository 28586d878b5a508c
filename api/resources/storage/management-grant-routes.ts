/**
 * Uploads of those who write surveys: public files, with a key or a session that may write. The gateway counts grants per
 * key, the application per session: grants, not stored files.
 */
import type { Routes } from '#api/context.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { checkFile, Grant, grantUpload, ManagementGrantRequest, PUBLIC_BYTES_MAX } from './grant.ts';

export const managementGrantRoutes: Routes = async (app, { context }) => {
  app.post(
    '/api/v1/management/storage',
    {
      schema: { body: ManagementGrantRequest, response: { 200: Grant } },
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
