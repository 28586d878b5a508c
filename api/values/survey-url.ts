/**
 * The address at which people answer link surveys. This service shows no surveys itself, so the operator sets the
 * address: a text with `{surveyId}` in it.
 */

/** Absolute, http or https, with exactly one `{surveyId}` in its path or query. */
export type SurveyUrl = string;

const PLACE = '{surveyId}';

/** @throws Error with the correct form */
export function parseSurveyUrl(value: string): SurveyUrl | null {
  if (value === '') return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  const isPlain =
    url !== null && ['http:', 'https:'].includes(url.protocol) && url.username === '' && url.hash === '';
  const isOnce = value.split(PLACE).length === 2;
  // Not in the host, because the id could then choose the site.
  if (!isPlain || !isOnce || url.host.includes('surveyid')) {
    throw new Error(
      `"${value}" is not where surveys are answered; give an address with ${PLACE} once in its path or query, such as https://surveys.example.com/${PLACE}`,
    );
  }
  return value;
}

/** Returns the address of one survey. @param surveyId letters and digits only */
export function addressOf(surveyUrl: SurveyUrl, surveyId: string): string {
  return surveyUrl.replace(PLACE, surveyId);
}

/** @returns the address of a link whose signed parts programs read. Such links exist even if SURVEY_URL is not set */
export function linkAddressOf(
  { surveyUrl, publicUrl }: { readonly surveyUrl: SurveyUrl | null; readonly publicUrl: string },
  surveyId: string,
): string {
  return addressOf(surveyUrl ?? `${publicUrl}/s/${PLACE}`, surveyId);
}

export function withQuery(address: string, added: Readonly<Record<string, string>>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(added)) url.searchParams.set(name, value);
  return url.href;
}
