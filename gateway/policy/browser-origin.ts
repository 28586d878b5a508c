/** An origin as it is written in the policy file, and as browsers send it in the header field Origin. */
import { Mistake } from './problems.ts';

/** Stands for every origin. */
export const ANY_ORIGIN = '*';

/** Browsers send lower case, no port that is the usual one, and no path. Apps and extensions have schemes of their own. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;
const EXAMPLE = 'write it as browsers send it, such as https://app.example.org';

/** @throws Mistake */
export function checkOrigin(text: string): void {
  if (text === ANY_ORIGIN) return;
  if (text === 'null')
    throw new Mistake(
      'null is the origin of all pages without one of their own, such as files and sandboxed frames',
      'name the origin of a page, or write "*"',
    );
  if (text.includes('*'))
    throw new Mistake(`"${text}" has a wildcard`, 'write each origin on its own, or "*" for all of them');
  const url = URL.parse(text);
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (isWeb ? url.origin === text : ORIGIN.test(text)) return;
  throw new Mistake(`"${text}" is not an origin`, isWeb ? `write ${url.origin}` : EXAMPLE);
}
