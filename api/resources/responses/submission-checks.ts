/**
 * Checks what a survey requires before it accepts a response: a PIN, a verified address, a reCAPTCHA token, a
 * single-use link. All proofs except the token are our own signatures, see auth/signer.ts.
 */

import type { Recaptcha } from '#api/auth/recaptcha.ts';
import type { Signer } from '#api/auth/signer.ts';
import { type ApiError, badRequest, forbidden } from '#api/errors.ts';
import { isSingleUseTokenValid } from '#api/resources/surveys/single-use.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';

/** Returns the proof that a respondent knows the PIN. A new PIN invalidates old proofs. */
export function pinAuthToken(surveyId: string, pin: string, signer: Signer): string {
  return signer.sign(pinText(surveyId, pin));
}

/** Whether the PIN is right. Takes the same time for every PIN. */
export function isPin(surveyId: string, pin: string, entered: string, signer: Signer): boolean {
  return signer.verify(pinText(surveyId, pin), pinAuthToken(surveyId, entered, signer));
}

function pinText(surveyId: string, pin: string): string {
  return `floodgate.pin.v1:${surveyId}:${pin}`;
}

/**
 * Returns the parameter `verify` of the link in a verification mail: the address, and the proof that the mail was sent
 * there.
 */
export function verifiedEmailToken(surveyId: string, email: string, signer: Signer): string {
  const address = Buffer.from(email).toString('base64url');
  return `${address}.${signer.sign(verifiedEmailText(surveyId, address))}`;
}

function verifiedEmailText(surveyId: string, address: string): string {
  return `floodgate.verified-email.v1:${surveyId}:${address}`;
}

/** @returns why the response is refused; null if the PIN was entered, or there is none */
export function pinError(
  { id, content }: BareSurvey,
  token: string | null | undefined,
  signer: Signer,
): ApiError | null {
  if (content.pin === null) return null;
  const isProven = typeof token === 'string' && signer.verify(pinText(id, content.pin), token);
  return isProven ? null : forbidden('Survey is protected by a PIN', { surveyId: id });
}

/** @param url the address at which the survey was opened, from the meta of the response */
export function emailError(
  { id, content }: BareSurvey,
  url: string | null | undefined,
  signer: Signer,
): ApiError | null {
  if (content.type !== 'link' || !content.isVerifyEmailEnabled) return null;
  const token = parseUrl(url)?.searchParams.get('verify') ?? '';
  const [address = '', signature = ''] = token.split('.');
  const isProven = address !== '' && signer.verify(verifiedEmailText(id, address), signature);
  return isProven ? null : forbidden('Survey requires email verification', { surveyId: id });
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

/** Runs one check after the other. @throws ApiError the first error */
export function throwFirst(...checks: readonly (() => ApiError | null)[]): void {
  for (const check of checks) {
    const error = check();
    if (error !== null) throw error;
  }
}
