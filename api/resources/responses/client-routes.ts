/**
 * Responses on the client API, v1 and v2.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { type ApiError, badRequest, existing, notFound } from '#api/errors.ts';
import { findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { changeIn, fieldIdsOf } from './body.ts';
import { clientCreation, closedError } from './client-creation.ts';
import { fileError } from './file-answers.ts';
import { ClientResponseReply, NewClientResponse, ResponseChange } from './schema.ts';
import { checkSentResponse } from './size.ts';
import { findResponse } from './store.ts';
import { pinError } from './submission-checks.ts';
import { changeResponse } from './write.ts';

const WorkspaceParams = Type.Object({ workspaceId: Type.String() });
const ResponseParams = Type.Object({ workspaceId: Type.String(), responseId: Type.String() });

const refuses = ['bad_request', 'not_found', 'forbidden', 'conflict'] as const;

export const clientResponseRoutes: Routes = async (app, { context }) => {
  const { clock, config, db, signer } = context;
  const creation = clientCreation(context);
  const loadWorkspace = loadPathWorkspace(context);

  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/responses`,
      {
        schema: { params: WorkspaceParams, body: NewClientResponse, response: { 200: ClientResponseReply } },
        // v1 reads the body first, v2 looks for the workspace first.
        ...(version === 'v1'
          ? { preValidation: creation.findScope, config: { refuses } }
          : {
              onRequest: creation.findScope,
              config: { refuses, malformedJsonMessage: 'Invalid JSON in request body' },
            }),
      },
      async (request) => {
        const id = await creation.create(request, request.body, version);
        return { data: { id, quotaFull: false } };
      },
    );

    app.put(
      `/api/${version}/client/:workspaceId/responses/:responseId`,
      {
        schema: { params: ResponseParams, body: ResponseChange, response: { 200: ClientResponseReply } },
        preValidation: loadWorkspace,
        config: { refuses, malformedJsonMessage: 'Malformed JSON in request body' },
      },
      async (request) => {
        const { responseId } = request.params;
        checkSentResponse(request.body);
        const found = await findResponse(db, responseId);
        if (found === null || found.workspaceId !== workspaceOf(request).id) {
          throw notFound('Response', responseId);
        }
        const survey = existing(await findAnsweredSurvey(db, found.surveyId), 'Survey', found.surveyId);
        const { body } = request;
        throwFirst(
          () => pinError(survey, body.pinAuthToken, signer),
          () => closedError(survey, clock()),
        );
        const change = changeIn(body, fieldIdsOf(survey));
        const response = await changeResponse(
          context,
          survey,
          responseId,
          change,
          (stored) => {
            if (stored.finished) {
              throw badRequest('Response is already finished', { code: 'response_already_finished' });
            }
            throwFirst(() => fileError(survey, change.data, config.publicUrl));
          },
          { mustBeOpen: true },
        );
        return { data: { id: response.id, quotaFull: false } };
      },
    );
  }
};

/** Runs one check after the other. The first error ends the request. */
function throwFirst(...checks: readonly (() => ApiError | null)[]): void {
  for (const check of checks) {
    const error = check();
    if (error !== null) throw error;
  }
}
