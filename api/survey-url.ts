/**
 * Where people answer link surveys. This service stores surveys and answers but shows none, so the address is the
 * operator's to give: a text with `{surveyId}` in it.
 */

/** Absolute, http or https, with exactly one `{surveyId}` in its path or query. */
export type SurveyUrl = string;

const PLACE = '{surveyId}';

/** @throws Error that says what would be right */
export function parseSurveyUrl(value: string): SurveyUrl | null {
  if (value === '') return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  const isPlain =
    url !== null && ['http:', 'https:'].includes(url.protocol) && url.username === '' && url.hash === '';
  const isOnce = value.split(PLACE).length === 2;
  // Not in the host: whoever chooses an id would choose the site.
  if (!isPlain || !isOnce || url.host.includes('surveyid')) {
    throw new Error(
      `"${value}" is not where surveys are answered; give an address with ${PLACE} once in its path or query, such as https://surveys.example.com/${PLACE}`,
    );
  }
  return value;
}

/** Where this survey is answered. @param surveyId letters and digits only */
export function addressOf(surveyUrl: SurveyUrl, surveyId: string): string {
  return surveyUrl.replace(PLACE, surveyId);
}

/**
 * The same for links whose signed parts programs read: there are some even before we know where surveys are answered.
 */
export function linkAddressOf(
  { surveyUrl, publicUrl }: { readonly surveyUrl: SurveyUrl | null; readonly publicUrl: string },
  surveyId: string,
): string {
  return addressOf(surveyUrl ?? `${publicUrl}/s/${PLACE}`, surveyId);
}

/** Adds to the query of an address, behind what is there. */
export function withQuery(address: string, added: Readonly<Record<string, string>>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(added)) url.searchParams.set(name, value);
  return url.href;
}
