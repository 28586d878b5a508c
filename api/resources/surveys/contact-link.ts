/**
 * Personal links to a survey. `contactToken` has the contact, the end of the link in Unix seconds (empty: never), and
 * the hex HMAC-SHA-256 of both and the survey.
 */
import type { Signer } from '#api/auth/signer.ts';
import type { Random } from '#api/ids.ts';
import { withQuery } from '#api/survey-url.ts';
import type { Millis } from '#shared/clock.ts';
import { newSingleUseLink } from './single-use.ts';
import type { Survey } from './store.ts';

const PARAMETER = 'contactToken';

interface ContactLink {
  readonly contactId: string;
  /** A full second; null: it never ends. */
  readonly expiresAt: Millis | null;
}

/** @param address the address of the survey */
export function newContactLink(
  { signer, random }: { readonly signer: Signer; readonly random: Random },
  address: string,
  { id, content }: Survey,
  link: ContactLink,
): string {
  const { singleUse } = content;
  const end = link.expiresAt === null ? '' : String(link.expiresAt / 1_000);
  return withQuery(
    singleUse?.enabled === true
      ? newSingleUseLink(address, id, singleUse.isEncrypted, signer, random)
      : address,
    { [PARAMETER]: `${link.contactId}.${end}.${signer.sign(signedText(id, link.contactId, end))}` },
  );
}

/**
 * @param url the address at which the survey was opened
 * @returns the contact of the link; null when it is not personal; `invalid` when the token is not ours, or has ended
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
