/**
 * Single-use links. A link has `suId`, and `suToken` when the survey requires proof that we created the id: the hex
 * HMAC-SHA-256 of `formbricks.single-use.v1:{surveyId}:{suId}`.
 */
import type { Signer } from '#api/auth/signer.ts';
import type { Context } from '#api/context.ts';
import { newId } from '#api/values/ids.ts';
import { withQuery } from '#api/values/survey-url.ts';
import type { BareSurvey } from './store.ts';

const purpose = 'formbricks.single-use.v1';

/**
 * @param surveyUrl the address of the survey @returns the address with a new `suId`, if the survey has single-use links
 */
export function newLink(
  { signer, random }: Pick<Context, 'signer' | 'random'>,
  surveyUrl: string,
  { id, content: { singleUse } }: BareSurvey,
): string {
  if (singleUse?.enabled !== true) return surveyUrl;
  const suId = newId(random);
  const suToken = singleUse.isEncrypted ? { suToken: signer.sign(signedText(id, suId)) } : {};
  return withQuery(surveyUrl, { suId, ...suToken });
}

export function isSingleUseTokenValid(
  surveyId: string,
  suId: string,
  suToken: string,
  signer: Signer,
): boolean {
  return signer.verify(signedText(surveyId, suId), suToken);
}

function signedText(surveyId: string, suId: string): string {
  return `${purpose}:${surveyId}:${suId}`;
}
