/**
 * Responses on the client API, v1 and v2.
 *
 * Callers: anybody.
 */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Config } from '#api/config.ts';
import type { Context, Routes } from '#api/context.ts';
import { type ApiError, badRequest, notFound } from '#api/errors.ts';
import { wholeAddress } from '#api/http/client-address.ts';
import { type AnsweredSurvey, closedError, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { isId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { changeIn, refuseForeignFiles } from './answers.ts';
import { ClientResponseReply, NewClientResponse, ResponseChange, type ResponseMeta } from './schema.ts';
import { findResponse } from './store.ts';
import { emailError, pinError, recaptchaError, singleUseError, throwFirst } from './submission-checks.ts';
import { readUserAgent } from './user-agent.ts';
import { changeResponse, createResponse, type NewResponse, type Respondent } from './write.ts';

type Version = 'v1' | 'v2';

const WorkspaceParams = Type.Object({ workspaceId: Type.String() });
const ResponseParams = Type.Object({ workspaceId: Type.String(), responseId: Type.String() });

/** The codes of ISO 3166, and those of CDNs for other networks, such as T1. */
const COUNTRY = /^[A-Za-z0-9]{2}$/;

export const clientResponseRoutes: Routes = async (app, { context }) => {
  const { clock, config, db, signer } = context;
  const loadWorkspace = loadPathWorkspace(context);

  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/responses`,
      {
        schema: { params: WorkspaceParams, body: NewClientResponse, response: { 200: ClientResponseReply } },
        // v1 reads the body first, v2 looks for the workspace first.
        ...(version === 'v1' ? { preValidation: loadWorkspace } : { onRequest: loadWorkspace }),
      },
      async (request) => {
        const { body } = request;
        const person = await personError(context, request, body);
        const response = await createResponse(context, body.surveyId, (survey) => {
          checkSubmission(context, request, survey, body, version, person);
          return newResponse(context, request, survey, body, version);
        });
        return { data: { id: response.id, quotaFull: false } };
      },
    );

    app.put(
      `/api/${version}/client/:workspaceId/responses/:responseId`,
      {
        schema: { params: ResponseParams, body: ResponseChange, response: { 200: ClientResponseReply } },
        preValidation: loadWorkspace,
      },
      async (request) => {
        const { body } = request;
        const { responseId } = request.params;
        const found = await findResponse(db, responseId);
        if (found === null || found.workspaceId !== workspaceOf(request).id) {
          throw notFound('Response', responseId);
        }
        await changeResponse(context, found, (survey, stored) => {
          throwFirst(
            () => pinError(survey, body.pinAuthToken, signer),
            () => closedError(survey, clock()),
          );
          if (stored.finished) {
            throw badRequest('Response is already finished', { code: 'response_already_finished' });
          }
          return changeIn(body, survey, config.publicUrl);
        });
        return { data: { id: responseId, quotaFull: false } };
      },
    );
  }
};

/**
 * Verifies the reCAPTCHA token. Another server does this, and only once for each token, so it is no part of the
 * transaction.
 */
async function personError(
  { clock, db, recaptcha }: Context,
  request: FastifyRequest,
  { recaptchaToken, surveyId }: NewClientResponse,
): Promise<ApiError | null> {
  if (recaptcha.siteKey === null) return null;
  const survey = await findAnsweredSurvey(db, surveyId);
  const isRefused = survey?.workspaceId !== workspaceOf(request).id || closedError(survey, clock()) !== null;
  return isRefused ? null : recaptchaError(survey, recaptchaToken, recaptcha);
}

/**
 * @param person why the reCAPTCHA token is refused; null if it is not
 * @throws ApiError the first reason why the survey does not take the response, in the order of the version
 */
function checkSubmission(
  { clock, config, signer }: Context,
  request: FastifyRequest,
  survey: BareSurvey,
  { data, meta, pinAuthToken, singleUseId = null }: NewClientResponse,
  version: Version,
  person: ApiError | null,
): void {
  const { id: workspaceId } = workspaceOf(request);
  const url = meta?.url ?? null;
  const email = () => emailError(survey, url, signer);
  const singleUse = () => singleUseError(survey, { singleUseId, url }, signer);
  throwFirst(
    () =>
      survey.workspaceId === workspaceId
        ? null
        : badRequest('Survey is part of another workspace', { workspaceId }),
    () => closedError(survey, clock()),
    () => pinError(survey, pinAuthToken, signer),
    // v2 checks the single-use link before the address and the token.
    ...(version === 'v1' ? [email, () => person, singleUse] : [singleUse, email, () => person]),
  );
  refuseForeignFiles(survey, data, config.publicUrl);
}

function newResponse(
  { clock, config }: Context,
  request: FastifyRequest,
  survey: AnsweredSurvey,
  body: NewClientResponse,
  version: Version,
): NewResponse {
  const now = toTimestamp(clock());
  return {
    finished: body.finished,
    data: body.data,
    variables: body.variables ?? {},
    ttc: body.ttc ?? {},
    meta: metaOf(config, request, survey, body.meta ?? {}),
    displayId: body.displayId || null,
    singleUseId: body.singleUseId || null,
    endingId: body.endingId ?? null,
    language: body.language ?? null,
    createdAt: now,
    updatedAt: now,
    respondent: respondentOf(body, version),
  };
}

function respondentOf({ contactId, userId }: NewClientResponse, version: Version): Respondent | null {
  if (version === 'v1') return userId ? { by: 'userId', value: userId } : null;
  // A database may refuse a text that is not an id.
  return contactId && isId(contactId) ? { by: 'id', value: contactId } : null;
}

/** Uses only three fields of the client; the API determines the others itself. */
function metaOf(
  { trustedProxies }: Config,
  request: FastifyRequest,
  survey: BareSurvey,
  given: NonNullable<NewClientResponse['meta']>,
): ResponseMeta {
  const { headers } = request;
  const ipAddress = survey.content.isCaptureIpEnabled ? wholeAddress(request, trustedProxies) : null;
  const country = headers['cf-ipcountry'] ?? headers['cloudfront-viewer-country'];
  return {
    ...(given.source ? { source: given.source } : {}),
    ...(given.url ? { url: given.url } : {}),
    ...(given.action ? { action: given.action } : {}),
    userAgent: readUserAgent(headers['user-agent'] ?? ''),
    // The client can send the header too, where no CDN replaces it.
    ...(typeof country === 'string' && COUNTRY.test(country) ? { country } : {}),
    ...(ipAddress === null ? {} : { ipAddress }),
  };
}
