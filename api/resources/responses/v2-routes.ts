/**
 * Responses on v2.
 *
 * Callers: API keys. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { countResponses } from '#api/resources/surveys/response-counts.ts';
import { v2Resource } from '#api/resources/workspaces/resource.ts';
import { withAbsoluteFiles } from '#api/values/absolute-files.ts';
import { Id } from '#api/values/schemas.ts';
import { fileError } from './file-answers.ts';
import { createManagedResponse, deleteManagedResponse, withoutNull } from './management-write.ts';
import { NewV2Response, V2ResponseChange, V2ResponseReply } from './schema.ts';
import { checkSentResponse } from './size.ts';
import { matchingResponses, type Response, responses } from './store.ts';
import { throwFirst } from './submission-checks.ts';
import { changeResponse } from './write.ts';

const url = '/api/v2/management/responses';

export const v2ResponseRoutes: Routes = async (app, { context }) => {
  const { db, config } = context;
  const resource = v2Resource(app, context, {
    url,
    param: 'id',
    type: 'Response',
    rows: responses,
    reply: V2ResponseReply,
    toReplies: (found) => found.map(toReply),
  });

  resource.list(
    { surveyId: Type.Optional(Id), contactId: Type.Optional(Id) },
    responses,
    async (query, request) => {
      const workspaceIds = readableWorkspaces(request);
      const isOfContact = query.contactId !== undefined;
      return {
        matching: await matchingResponses(db, workspaceIds, query),
        countKept: isOfContact ? undefined : () => countResponses(db, workspaceIds, query.surveyId),
      };
    },
  );

  app.post(
    url,
    {
      schema: { body: NewV2Response, response: { 201: resource.one } },
    },
    async (request, reply) => {
      const { body } = request;
      const { data, language, ttc } = body;
      const made = await createManagedResponse(context, request, body, (survey) => {
        throwFirst(() => fileError(survey, data, config.publicUrl));
        return { data, language: language ?? undefined, ttc: ttc ?? undefined };
      });
      return reply.code(201).send({ data: toReply(made) });
    },
  );

  resource.read();

  resource.change(V2ResponseChange, async (body, stored) => {
    const { data, endingId, finished, language, meta, ttc, variables } = body;
    checkSentResponse(body);
    return changeResponse(context, stored, (survey) => {
      throwFirst(() => fileError(survey, data ?? {}, config.publicUrl));
      return {
        data,
        endingId,
        finished,
        language,
        meta: meta === undefined ? undefined : withoutNull(meta ?? {}),
        ttc: ttc ?? undefined,
        variables: variables ?? undefined,
        maps: 'replace',
      };
    });
  });

  resource.remove((stored) => deleteManagedResponse(context, stored.id));

  /** Converts a response to the format of v2. Unlike on v1, the contact is an id, and there are no tags. */
  function toReply(response: Response) {
    const { workspaceId: _, ...shown } = response;
    return { ...shown, data: withAbsoluteFiles(response.data, config.publicUrl) };
  }
};
