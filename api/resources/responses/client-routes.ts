/** Responses on the client API, v1 and v2. No key. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';
import { type ApiError, badRequest, notFound } from '#api/errors.ts';
import { wholeAddress } from '#api/http/client-address.ts';
import { keepContact, keepContactByUserId } from '#api/resources/contacts/store.ts';
import { contactIn } from '#api/resources/surveys/contact-link.ts';
import { type BareSurvey, findAnsweredSurvey, isOpen, surveyClosed } from '#api/resources/surveys/store.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { fieldIdsOf, fileError, otherLengthError } from './answers.ts';
import { answersIn } from './body.ts';
import { ClientResponseReply, NewClientResponse, ResponseChange, type ResponseMeta } from './schema.ts';
import { checkIdLengths, checkResponseSize, idsIn } from './size.ts';
import { findResponse } from './store.ts';
import {
  contactLinkError,
  emailError,
  pinError,
  recaptchaError,
  respondentDigest,
  singleUseError,
} from './submission-checks.ts';
import { readUserAgent } from './user-agent.ts';
import { changeResponse, createResponse } from './write.ts';

type Version = 'v1' | 'v2';

const WorkspaceParams = Type.Object({ workspaceId: Type.String() });
const ResponseParams = Type.Object({ workspaceId: Type.String(), responseId: Type.String() });

/** Of a new response, and of a change of one. */
const refuses = ['bad_request', 'not_found', 'forbidden', 'conflict'] as const;

export const clientResponseRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, clock, config, recaptcha, signer } = context;
  const loadWorkspace = loadPathWorkspace(context);

  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/responses`,
      {
        schema: { params: WorkspaceParams, body: NewClientResponse, response: { 200: ClientResponseReply } },
        // v1 reads the body first, v2 the workspace.
        ...(version === 'v1'
          ? { preValidation: loadWorkspace, config: { refuses } }
          : {
              onRequest: loadWorkspace,
              config: { refuses, malformedJsonMessage: 'Invalid JSON in request body' },
            }),
      },
      async (request) => {
        const workspace = workspaceOf(request);
        const { body } = request;
        checkResponseSize(body);
        checkIdLengths(idsIn(body));
        const survey = await findAnsweredSurvey(db, body.surveyId);
        if (survey === null) throw notFound('Survey', body.surveyId);
        if (survey.workspaceId !== workspace.id) {
          throw badRequest('Survey is part of another workspace', { workspaceId: workspace.id });
        }
        const { data, finished } = body;
        throwFirst(() => closedError(survey));
        for (const check of checksOf(version, survey, body)) {
          const error = await check();
          if (error !== null) throw error;
        }
        throwFirst(
          () => fileError(survey, data, config.publicUrl),
          () => (version === 'v2' ? otherLengthError(survey, data) : null),
        );
        const now = toTimestamp(clock());
        const response = await createResponse(
          context,
          survey,
          {
            finished,
            data,
            variables: body.variables ?? {},
            ttc: body.ttc ?? {},
            meta: metaOf(request, survey, body.meta ?? {}),
            displayId: body.displayId ?? null,
            singleUseId: body.singleUseId ?? null,
            endingId: body.endingId ?? null,
            language: body.language ?? null,
            createdAt: now,
            updatedAt: now,
          },
          async (trx) => {
            // Whose link it was is signed; what a client says about itself is not.
            const linked = contactIn(survey.id, body.meta?.url, signer, clock());
            if (linked !== null && survey.content.type === 'link') {
              return keepContact(trx, workspace.id, linked);
            }
            if (version === 'v1') {
              return body.userId ? keepContactByUserId(trx, workspace.id, body.userId) : null;
            }
            return body.contactId ? keepContact(trx, workspace.id, body.contactId) : null;
          },
          { mustBeOpen: true, emailDigest: respondentDigest(survey, body.meta?.url, signer) },
        );
        return { data: { id: response.id, quotaFull: false } };
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
        checkResponseSize(request.body);
        checkIdLengths(idsIn(request.body));
        const found = await findResponse(db, responseId);
        if (found === null || found.workspaceId !== workspaceOf(request).id) {
          throw notFound('Response', responseId);
        }
        const survey = await findAnsweredSurvey(db, found.surveyId);
        if (survey === null) throw notFound('Survey', found.surveyId);
        const { body } = request;
        throwFirst(
          () => pinError(survey, body.pinAuthToken, signer),
          () => closedError(survey),
        );
        const answers = answersIn(body, fieldIdsOf(survey));
        const change = {
          ...answers,
          finished: body.finished,
          variables: body.variables ?? undefined,
          endingId: body.endingId,
        };
        const response = await changeResponse(
          context,
          survey,
          responseId,
          change,
          (stored) => {
            if (stored.finished) {
              throw badRequest('Response is already finished', { code: 'response_already_finished' });
            }
            throwFirst(
              () => fileError(survey, answers.data, config.publicUrl),
              () => otherLengthError(survey, answers.data),
            );
          },
          { mustBeOpen: true },
        );
        return { data: { id: response.id, quotaFull: false } };
      },
    );
  }

  /** v2 looks at the single-use link before the address and the token. */
  function checksOf(
    version: Version,
    survey: BareSurvey,
    { pinAuthToken, recaptchaToken, singleUseId = null, meta }: NewClientResponse,
  ): readonly (() => ApiError | null | Promise<ApiError | null>)[] {
    const url = meta?.url ?? null;
    const pin = () => pinError(survey, pinAuthToken, signer);
    const email = () => emailError(survey, url, signer);
    const person = () => recaptchaError(survey, recaptchaToken, recaptcha);
    const singleUse = () => singleUseError(survey, { singleUseId, url }, signer);
    const link = () => contactLinkError(survey, url, signer, clock());
    return version === 'v1' ? [pin, email, link, person, singleUse] : [pin, singleUse, email, link, person];
  }

  /** Of the client's own words only these three count; the rest is what we see ourselves. */
  function metaOf(
    request: FastifyRequest,
    survey: BareSurvey,
    given: NonNullable<NewClientResponse['meta']>,
  ): ResponseMeta {
    const { headers } = request;
    const ipAddress = survey.content.isCaptureIpEnabled ? wholeAddress(request, config.trustedProxies) : null;
    const country = headers['cf-ipcountry'] ?? headers['cloudfront-viewer-country'];
    return {
      ...(given.source ? { source: given.source } : {}),
      ...(given.url ? { url: given.url } : {}),
      ...(given.action ? { action: given.action } : {}),
      userAgent: readUserAgent(headers['user-agent'] ?? ''),
      ...(typeof country === 'string' && country !== '' ? { country } : {}),
      ...(ipAddress === null ? {} : { ipAddress }),
    };
  }
};

function closedError(survey: BareSurvey): ApiError | null {
  return isOpen(survey) ? null : surveyClosed(survey.id);
}

/** Asks one after the other; the first error ends the request. */
function throwFirst(...checks: readonly (() => ApiError | null)[]): void {
  for (const check of checks) {
    const error = check();
    if (error !== null) throw error;
  }
}
