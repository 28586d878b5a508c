/**
 * Personal links to a survey. `contactToken` has the contact, the expiry of the link in Unix seconds (empty for never),
 * and the hex HMAC-SHA-256 of both and the survey.
 */
import type { Signer } from '#api/auth/signer.ts';
import type { Context } from '#api/context.ts';
import { withQuery } from '#api/survey-url.ts';
import type { Millis } from '#shared/clock.ts';
import { newLink } from './single-use.ts';
import type { Survey } from './store.ts';

const PARAMETER = 'contactToken';

interface ContactLink {
  readonly contactId: string;
  /** Expiry, rounded to a full second; null if the link never ends. */
  readonly expiresAt: Millis | null;
}

export function newContactLink(
  parts: Pick<Context, 'signer' | 'random'>,
  address: string,
  survey: Survey,
  link: ContactLink,
): string {
  const end = link.expiresAt === null ? '' : String(link.expiresAt / 1_000);
  const signature = parts.signer.sign(signedText(survey.id, link.contactId, end));
  return withQuery(newLink(parts, address, survey), {
    [PARAMETER]: `${link.contactId}.${end}.${signature}`,
  });
}

/**
 * @param url the address at which the survey was opened
 * @returns the contact of the link; null if it is not personal; `invalid` if the token is forged or expired
 */
export function contactIn(
  surveyId: string,
  url: string | null | undefined,
  signer: Signer,
  now: Millis,
): string | null | 'invalid' {
  const token =
    typeof url === 'string' && URL.canParse(url) ? new URL(url).searchParams.get(PARAMETER) : null;
  if (token === null) return null;
  const [contactId = '', end = '', signature = ''] = token.split('.');
  const isOurs = contactId !== '' && signer.verify(signedText(surveyId, contactId, end), signature);
  const hasEnded = end !== '' && Number(end) * 1_000 <= now;
  return isOurs && !hasEnded ? contactId : 'invalid';
}

function signedText(surveyId: string, contactId: string, end: string): string {
  return `floodgate.contact-link.v1:${surveyId}:${contactId}:${end}`;
}
