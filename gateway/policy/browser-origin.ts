/** An origin as it is written in the policy file, and as browsers send it in the header field Origin. */
import { Mistake } from './problems.ts';

/** Stands for every origin. */
export const ANY_ORIGIN = '*';

/** Browsers send lower case, no port that is the usual one, and no path. Apps and extensions have schemes of their own. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;

/** @throws Mistake */
export function checkOrigin(text: string): void {
  const url = text.includes('*') ? null : URL.parse(text);
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (text === ANY_ORIGIN || (isWeb ? url.origin === text : ORIGIN.test(text))) return;
  throw new Mistake(
    `"${text}" is not an origin`,
    `write one as browsers send it, such as ${isWeb ? url.origin : 'https://app.example.org'}, or "*" for all of them`,
  );
}
