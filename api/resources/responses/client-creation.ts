/** Checks a new response of a client, in the order of its API version, identifies its contact, and creates it. */
import type { FastifyRequest } from 'fastify';
import type { Kept } from '#api/cache/workspace-cache.ts';
import type { Config } from '#api/config.ts';
import type { Context } from '#api/context.ts';
import { ApiError, badRequest, notFound } from '#api/errors.ts';
import { wholeAddress } from '#api/http/client-address.ts';
import { refusing } from '#api/http/refuses.ts';
import { type AnsweredSurvey, isOpen, surveyClosed } from '#api/resources/surveys/answered.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import { findPathWorkspace, pathScope } from '#api/resources/workspaces/scope.ts';
import { isId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { fileError } from './file-answers.ts';
import type { Respondent } from './insert.ts';
import type { NewClientResponse, ResponseMeta } from './schema.ts';
import { checkSentResponse } from './size.ts';
import {
  emailError,
  pinError,
  recaptchaError,
  respondentDigest,
  singleUseError,
} from './submission-checks.ts';
import { createSurveyReader } from './survey-reader.ts';
import { readUserAgent } from './user-agent.ts';
import { createResponse, createResponseAlone, type NewResponse } from './write.ts';

type Version = 'v1' | 'v2';

/** The codes of ISO 3166, and those of CDNs for other networks, such as T1. */
const COUNTRY = /^[A-Za-z0-9]{2}$/;

interface ClientCreation {
  /** A hook that can run before or after the body is read. Replies 404 unless the workspace of the path exists. */
  readonly findScope: (request: FastifyRequest) => Promise<void>;
  /** @returns its id @throws ApiError not_found, bad_request, forbidden, conflict */
  create(request: FastifyRequest, body: NewClientResponse, version: Version): Promise<string>;
}

export function clientCreation(context: Context): ClientCreation {
  const { db, clock, config, recaptcha, signer, states } = context;
  const surveys = createSurveyReader(db);
  const scopes = states.beside<Kept>();

  const findScope = async (request: FastifyRequest): Promise<void> => {
    await scopes.get(pathScope(request), async () => {
      await findPathWorkspace(context, request);
      return { bytes: 0, validUntil: Number.POSITIVE_INFINITY };
    });
  };

  const create: ClientCreation['create'] = async (request, body, version) => {
    checkSentResponse(body);
    const respond = async <T>(
      survey: AnsweredSurvey,
      createBy: (...parts: Parameters<typeof createResponse>) => Promise<T>,
    ): Promise<T> => {
      await check(version, survey, body);
      return createBy(
        context,
        survey,
        newResponse(context, request, survey, body),
        respondentOf(body, version),
        {
          mustBeOpen: true,
          emailDigest: respondentDigest(survey, body.meta?.url, signer),
        },
      );
    };
    const last = surveys.last(body.surveyId);
    // A token of reCAPTCHA can be verified only once.
    const isTried =
      last !== null && isIn(pathScope(request), last) && last.content.recaptcha?.enabled !== true;
    const tried = isTried ? await respond(last, createResponseAlone).catch(refusalIn) : null;
    if (tried !== null && !(tried instanceof ApiError)) return tried.id;
    const survey = await surveyOf(request, body.surveyId);
    // The survey has not changed, so it would refuse the response again.
    if (tried !== null && survey === last) throw tried;
    return (await respond(survey, createResponse)).id;
  };

  /** @throws ApiError not_found, bad_request unless it is a survey of the path's workspace */
  async function surveyOf(request: FastifyRequest, surveyId: string): Promise<AnsweredSurvey> {
    const scopeId = pathScope(request);
    const survey = await surveys.read(surveyId);
    if (survey !== null && isIn(scopeId, survey)) return survey;
    // Another process may have deleted the workspace since it was found.
    scopes.purge({ workspaceId: scopeId, environmentId: scopeId });
    const workspace = await findPathWorkspace(context, request);
    if (survey === null) throw notFound('Survey', surveyId);
    throw badRequest('Survey is part of another workspace', { workspaceId: workspace.id });
  }

  /** @throws ApiError the first reason why the survey does not take it */
  async function check(version: Version, survey: BareSurvey, body: NewClientResponse): Promise<void> {
    const { data, meta, pinAuthToken, recaptchaToken, singleUseId = null } = body;
    const url = meta?.url ?? null;
    const pin = () => pinError(survey, pinAuthToken, signer);
    const email = () => emailError(survey, url, signer);
    const person = () => recaptchaError(survey, recaptchaToken, recaptcha);
    const singleUse = () => singleUseError(survey, { singleUseId, url }, signer);
    const reasons: readonly (() => ApiError | null | Promise<ApiError | null>)[] = [
      () => closedError(survey, clock()),
      // v2 checks the single-use link before the address and the token.
      ...(version === 'v1' ? [pin, email, person, singleUse] : [pin, singleUse, email, person]),
      () => fileError(survey, data, config.publicUrl),
    ];
    for (const reason of reasons) {
      const error = await reason();
      if (error !== null) throw error;
    }
  }

  return { findScope: refusing(findScope, 'not_found'), create };
}

function newResponse(
  { clock, config }: Context,
  request: FastifyRequest,
  survey: BareSurvey,
  body: NewClientResponse,
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

function isIn(scopeId: string, { environmentId, workspaceId }: BareSurvey): boolean {
  return scopeId === workspaceId || scopeId === environmentId;
}

function refusalIn(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}

export function closedError(survey: BareSurvey, now: Millis): ApiError | null {
  return isOpen(survey, now) ? null : surveyClosed(survey.id);
}
