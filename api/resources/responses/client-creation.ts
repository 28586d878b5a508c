/**
 * What becomes of a new response that a client sends: the checks in the order of its version, and whom it is from. First by
 * a survey that is known from before (known-surveys.ts); where that does not do, by what the database says now.
 */
import type { FastifyRequest } from 'fastify';
import type { Context } from '#api/context.ts';
import { ApiError, badRequest, notFound } from '#api/errors.ts';
import { wholeAddress } from '#api/http/client-address.ts';
import { refusing } from '#api/http/refuses.ts';
import { isId } from '#api/ids.ts';
import { contactIn } from '#api/resources/surveys/contact-link.ts';
import {
  type AnsweredSurvey,
  type BareSurvey,
  findAnsweredSurvey,
  isOpen,
  surveyClosed,
} from '#api/resources/surveys/store.ts';
import { findPathWorkspace, pathScope } from '#api/resources/workspaces/scope.ts';
import type { Workspace } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { fileError, otherLengthError } from './answers.ts';
import { createKnownSurveys } from './known-surveys.ts';
import type { Respondent } from './lone-insert.ts';
import { comesAlone, mayComeAlone } from './lone-write.ts';
import type { NewClientResponse, ResponseMeta } from './schema.ts';
import { checkIdLengths, checkResponseSize, idsIn } from './size.ts';
import {
  contactLinkError,
  emailError,
  pinError,
  recaptchaError,
  respondentDigest,
  singleUseError,
} from './submission-checks.ts';
import { readUserAgent } from './user-agent.ts';
import { type CreationCheck, createLoneResponse, createResponse, type NewResponse } from './write.ts';

export type Version = 'v1' | 'v2';

export interface ClientCreation {
  /** A hook, before or after the body is read: 404 unless the path's workspace exists. */
  readonly findScope: (request: FastifyRequest) => Promise<void>;
  /** @returns its id @throws ApiError not_found, bad_request, forbidden, conflict */
  create(request: FastifyRequest, body: NewClientResponse, version: Version): Promise<string>;
}

/** What a survey that was read before made of the response. */
type Attempt =
  | { readonly kind: 'created'; readonly id: string }
  | { readonly kind: 'refused'; readonly refusal: ApiError }
  | { readonly kind: 'undecided' };

const undecided: Attempt = { kind: 'undecided' };

export function clientCreation(context: Context): ClientCreation {
  const { db, clock, config, recaptcha, signer, states } = context;
  const known = createKnownSurveys({ clock });
  states.alsoPurge(known);
  const workspaces = new WeakMap<FastifyRequest, Workspace>();

  /** A workspace with a survey that is known was there; the insert looks whether it still is. */
  const findScope = async (request: FastifyRequest): Promise<void> => {
    if (known.knowsScope(pathScope(request))) return;
    workspaces.set(request, await findPathWorkspace(context, request));
  };

  const create: ClientCreation['create'] = async (request, body, version) => {
    checkResponseSize(body);
    checkIdLengths(idsIn(body));
    const scopeId = pathScope(request);
    const knownSurvey = known.find(scopeId, body.surveyId);
    const attempt = knownSurvey === null ? undecided : await attemptBy(knownSurvey, request, body, version);
    if (attempt.kind === 'created') return attempt.id;

    const workspace = workspaces.get(request) ?? (await findPathWorkspace(context, request));
    const survey = await findAnsweredSurvey(db, body.surveyId);
    if (survey === null) throw notFound('Survey', body.surveyId);
    if (survey.workspaceId !== workspace.id) {
      throw badRequest('Survey is part of another workspace', { workspaceId: workspace.id });
    }
    // By the same survey it would be refused again.
    if (attempt.kind === 'refused' && survey.version === knownSurvey?.version) throw attempt.refusal;
    known.forget(scopeId, body.surveyId);
    await check(version, survey, body);
    const parts = partsOf(request, survey, body, version);
    // Where it does not come alone, or something has changed meanwhile, the transaction says what.
    const id =
      (await createLoneResponse(context, survey, ...parts)) ??
      (await createResponse(context, survey, ...parts)).id;
    if (isWorthKnowing(survey)) known.keep(scopeId, survey);
    return id;
  };

  async function attemptBy(
    survey: AnsweredSurvey,
    request: FastifyRequest,
    body: NewClientResponse,
    version: Version,
  ): Promise<Attempt> {
    const { data, finished, singleUseId = null } = body;
    if (!comesAlone(survey, { data, finished, singleUseId }, null)) return undecided;
    try {
      await check(version, survey, body);
      const id = await createLoneResponse(context, survey, ...partsOf(request, survey, body, version));
      return id === null ? undecided : { kind: 'created', id };
    } catch (error) {
      if (error instanceof ApiError) return { kind: 'refused', refusal: error };
      throw error;
    }
  }

  /** @throws ApiError the first reason why the survey does not take it */
  async function check(version: Version, survey: BareSurvey, body: NewClientResponse): Promise<void> {
    const { data, meta, pinAuthToken, recaptchaToken, singleUseId = null } = body;
    const url = meta?.url ?? null;
    const pin = () => pinError(survey, pinAuthToken, signer);
    const email = () => emailError(survey, url, signer);
    const person = () => recaptchaError(survey, recaptchaToken, recaptcha);
    const singleUse = () => singleUseError(survey, { singleUseId, url }, signer);
    const link = () => contactLinkError(survey, url, signer, clock());
    const reasons: readonly (() => ApiError | null | Promise<ApiError | null>)[] = [
      () => closedError(survey),
      // v2 looks at the single-use link before the address and the token.
      ...(version === 'v1' ? [pin, email, link, person, singleUse] : [pin, singleUse, email, link, person]),
      () => fileError(survey, data, config.publicUrl),
      () => (version === 'v2' ? otherLengthError(survey, data) : null),
    ];
    for (const reason of reasons) {
      const error = await reason();
      if (error !== null) throw error;
    }
  }

  function partsOf(
    request: FastifyRequest,
    survey: BareSurvey,
    body: NewClientResponse,
    version: Version,
  ): readonly [NewResponse, Respondent | null, CreationCheck] {
    const now = toTimestamp(clock());
    const given: NewResponse = {
      finished: body.finished,
      data: body.data,
      variables: body.variables ?? {},
      ttc: body.ttc ?? {},
      meta: metaOf(request, survey, body.meta ?? {}),
      displayId: body.displayId ?? null,
      singleUseId: body.singleUseId ?? null,
      endingId: body.endingId ?? null,
      language: body.language ?? null,
      createdAt: now,
      updatedAt: now,
    };
    const emailDigest = respondentDigest(survey, body.meta?.url, signer);
    return [
      given,
      respondentOf(survey, body, version),
      { mustBeOpen: true, scopeId: pathScope(request), emailDigest },
    ];
  }

  function respondentOf(
    { content, id }: BareSurvey,
    { contactId, meta, userId }: NewClientResponse,
    version: Version,
  ): Respondent | null {
    // Whose link it was is signed; what a client says about itself is not.
    const linked = contactIn(id, meta?.url, signer, clock());
    if (linked !== null && content.type === 'link') return contactById(linked);
    if (version === 'v1') return userId ? { by: 'userId', value: userId } : null;
    return contactId ? contactById(contactId) : null;
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

  return { findScope: refusing(findScope, 'not_found'), create };
}

/** What is no id may be text that a database does not take. */
function contactById(id: string): Respondent | null {
  return isId(id) ? { by: 'id', value: id } : null;
}

/** A token of reCAPTCHA serves once, so it is not asked about twice. */
function isWorthKnowing(survey: AnsweredSurvey): boolean {
  return mayComeAlone(survey) && survey.content.recaptcha?.enabled !== true;
}

export function closedError(survey: BareSurvey): ApiError | null {
  return isOpen(survey) ? null : surveyClosed(survey.id);
}
