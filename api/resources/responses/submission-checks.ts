/**
 * What a survey may demand before it takes a response: a PIN, a verified address, a token of reCAPTCHA, a link that
 * serves once. All proofs but the token are signatures of ours, see
 * auth/signer.ts.
 */
import type { Signer } from '#api/auth/signer.ts';
import { type ApiError, badRequest, forbidden } from '#api/errors.ts';
import type { Recaptcha } from '#api/recaptcha.ts';
import { contactIn } from '#api/resources/surveys/contact-link.ts';
import { isSingleUseTokenValid } from '#api/resources/surveys/single-use.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import type { Millis } from '#shared/clock.ts';

/** What whoever entered the PIN of a survey sends with the response. A new PIN makes the old proofs worthless. */
export function pinAuthToken(surveyId: string, pin: string, signer: Signer): string {
  return signer.sign(pinText(surveyId, pin));
}

/** Constant in time, whatever was entered. */
export function isPin(surveyId: string, pin: string, entered: string, signer: Signer): boolean {
  return signer.verify(pinText(surveyId, pin), pinAuthToken(surveyId, entered, signer));
}

function pinText(surveyId: string, pin: string): string {
  return `floodgate.pin.v1:${surveyId}:${pin}`;
}

/** What the link in a verification mail carries as `verify`: the address and the proof that it was written to. */
export function verifiedEmailToken(surveyId: string, email: string, signer: Signer): string {
  const address = Buffer.from(email).toString('base64url');
  return `${address}.${signer.sign(verifiedEmailText(surveyId, address))}`;
}

function verifiedEmailText(surveyId: string, address: string): string {
  return `floodgate.verified-email.v1:${surveyId}:${address}`;
}

/** @returns why the response is not taken; null: the PIN was entered, or there is none */
export function pinError(
  { id, content }: BareSurvey,
  token: string | null | undefined,
  signer: Signer,
): ApiError | null {
  if (content.pin === null) return null;
  const isProven = typeof token === 'string' && signer.verify(pinText(id, content.pin), token);
  return isProven ? null : forbidden('Survey is protected by a PIN', { surveyId: id });
}

/** @param url the address the survey was opened at, from the response's meta */
export function emailError(
  { id, content }: BareSurvey,
  url: string | null | undefined,
  signer: Signer,
): ApiError | null {
  if (!asksForEmail(content)) return null;
  const isProven = provenAddress(id, url, signer) !== null;
  return isProven ? null : forbidden('Survey requires email verification', { surveyId: id });
}

/**
 * What stands for the address of a respondent who may finish one response only: a digest, so that the answers do not say
 * whose they are.
 *
 * @returns null where a survey does not ask for that
 */
export function respondentDigest(
  survey: BareSurvey,
  url: string | null | undefined,
  signer: Signer,
): string | null {
  if (!isOneResponsePerEmail(survey)) return null;
  const address = provenAddress(survey.id, url, signer);
  if (address === null) return null;
  const email = Buffer.from(address, 'base64url').toString().trim().toLowerCase();
  return signer.sign(`floodgate.one-response.v1:${survey.id}:${email}`);
}

/** Only an address that was verified says who somebody is. */
export function isOneResponsePerEmail({ content }: BareSurvey): boolean {
  return asksForEmail(content) && content.isSingleResponsePerEmailEnabled;
}

function asksForEmail({ type, isVerifyEmailEnabled }: BareSurvey['content']): boolean {
  return type === 'link' && isVerifyEmailEnabled;
}

/** As the link carries it, in base64url; null: nobody has shown that the address is theirs. */
function provenAddress(surveyId: string, url: string | null | undefined, signer: Signer): string | null {
  const token = parseUrl(url)?.searchParams.get('verify') ?? '';
  const [address = '', signature = ''] = token.split('.');
  return address !== '' && signer.verify(verifiedEmailText(surveyId, address), signature) ? address : null;
}

/** A personal link that is not ours, not for this survey, or has ended, names nobody. */
export function contactLinkError(
  { id: surveyId, content }: BareSurvey,
  url: string | null | undefined,
  signer: Signer,
  now: Millis,
): ApiError | null {
  const isRefused = content.type === 'link' && contactIn(surveyId, url, signer, now) === 'invalid';
  return isRefused
    ? badRequest('This personal link is not valid, or has ended; ask for a new one', { surveyId })
    : null;
}

export async function recaptchaError(
  { content }: BareSurvey,
  token: string | null | undefined,
  recaptcha: Recaptcha,
): Promise<ApiError | null> {
  if (recaptcha.siteKey === null || content.recaptcha?.enabled !== true) return null;
  const failure = (message: string): ApiError =>
    badRequest(message, { code: 'recaptcha_verification_failed' });
  if (!token) return failure('Missing recaptcha token');
  const isPerson = await recaptcha.verify(token, content.recaptcha.threshold);
  return isPerson ? null : failure('reCAPTCHA verification failed');
}

export function singleUseError(
  survey: BareSurvey,
  response: { readonly singleUseId?: string | null; readonly url?: string | null },
  signer: Signer,
): ApiError | null {
  const { id: surveyId, workspaceId, content } = survey;
  if (content.type !== 'link' || content.singleUse?.enabled !== true) return null;
  const failure = (message: string): ApiError => badRequest(message, { surveyId, workspaceId });
  const { singleUseId, url } = response;
  if (!singleUseId) return failure('Missing single use id');
  if (!url) return failure('Missing or invalid URL in response metadata');
  const query = parseUrl(url)?.searchParams;
  if (query === undefined) return failure('Invalid URL in response metadata');
  const suId = query.get('suId');
  if (suId === null || suId !== singleUseId) return failure('Invalid single use id');
  if (!content.singleUse.isEncrypted) return null;
  const suToken = query.get('suToken') ?? '';
  return isSingleUseTokenValid(surveyId, suId, suToken, signer) ? null : failure('Invalid single use id');
}

function parseUrl(text: string | null | undefined): URL | null {
  return typeof text === 'string' && URL.canParse(text) ? new URL(text) : null;
}
