/**
 * Single-use links. A link has `suId`, and `suToken` when the survey requires proof that we created the id: the hex
 * HMAC-SHA-256 of `formbricks.single-use.v1:{surveyId}:{suId}`.
 */
import type { Signer } from '#api/auth/signer.ts';
import { newId, type Random } from '#api/ids.ts';
import { withQuery } from '#api/survey-url.ts';

const purpose = 'formbricks.single-use.v1';

/**
 * Creates a link for a survey.
 *
 * @param surveyUrl the address of the survey
 * @param isSigned the survey's `singleUse.isEncrypted`
 */
export function newSingleUseLink(
  surveyUrl: string,
  surveyId: string,
  isSigned: boolean,
  signer: Signer,
  random: Random,
): string {
  const suId = newId(random);
  return withQuery(surveyUrl, {
    suId,
    ...(isSigned ? { suToken: signer.sign(signedText(surveyId, suId)) } : {}),
  });
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
