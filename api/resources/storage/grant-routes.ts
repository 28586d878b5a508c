/**
 * Where uploads are granted (contract storage.md §1): private files on the client API, no key; public ones on the
 * management API, with a key or a session that may write. The edge counts grants per address and per key, and we count
 * them per session: grants, not stored files (SPEC.md §8).
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';
import { findsBodyWorkspace, findsPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import {
  ClientGrantRequest,
  checkFile,
  checkSurvey,
  Grant,
  grantUpload,
  ManagementGrantRequest,
  PUBLIC_BYTES_MAX,
} from './grant.ts';

const WorkspaceParams = Type.Object({ workspaceId: Type.String() });

export const grantRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/storage`,
      {
        schema: { params: WorkspaceParams, body: ClientGrantRequest, response: { 200: Grant } },
        onRequest: findsPathWorkspace(context),
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

  app.post(
    '/api/v1/management/storage',
    {
      schema: { body: ManagementGrantRequest, response: { 200: Grant } },
      config: { limit: 'storage.upload' },
      preValidation: findsBodyWorkspace(context),
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
