/** The key `replies`: what browsers get when a request is refused. */
import type { XStatic } from 'typebox/schema';
import { loadPage } from '#gateway/policy/page-template.ts';
import { ANY_ORIGIN, type OriginRule } from '#gateway/policy/policy-set.ts';
import { attempt, Mistake, type Report } from '#gateway/policy/problems.ts';
import { parseRoute } from '#gateway/policy/route.ts';
import { fileKey } from './key.ts';
import { fileName, flag, list, object, route, shortText } from './schema-parts.ts';

/** Every reply looks through all of them. */
const ORIGINS_MAX = 100;

const origin = shortText(300, 'an origin such as https://app.example.org, or "*" for all');

const entry = {
  anyOf: [
    origin,
    object(
      ['origin'],
      {
        origin,
        route: route('METHODS PATH, such as GET /public/*'),
        credentials: flag('true if its pages send cookies; false is the default'),
      },
      'an origin with its routes',
    ),
  ],
  description:
    'an origin such as https://app.example.org, at most 300 characters; or { origin: ORIGIN, route: METHODS PATH, credentials: true }, where route and credentials may be missing',
} as const;

const cors = {
  anyOf: [{ const: ANY_ORIGIN }, list(entry, ORIGINS_MAX, '')],
  description: `"*", or a list of at most ${ORIGINS_MAX} origins such as https://app.example.org; an entry can also be { origin: ORIGIN, route: METHODS PATH, credentials: true }`,
} as const;

export const replies = fileKey({
  schema: {
    ...object(
      [],
      {
        page: {
          ...fileName,
          description: 'the name of an HTML file in the same folder, with {seconds}, {policy} or {decision}',
        },
        cors,
      },
      'what browsers get when a request is refused, such as { page: denied.html, cors: [https://app.example.org] }',
    ),
    minProperties: 1,
  },
  see: '#pages-for-browsers',
  more: 'See also [other origins](#pages-of-other-origins)',
  read: (replies, { ignoreCase, referenced, report }) => ({
    page: replies?.page === undefined ? null : loadPage(replies.page, referenced, report),
    origins: replies?.cors === undefined ? null : originRules(replies.cors, ignoreCase, report),
  }),
});

function originRules(written: XStatic<typeof cors>, ignoreCase: boolean, report: Report): OriginRule[] {
  if (written === ANY_ORIGIN) return [{ origin: ANY_ORIGIN, route: null, credentials: false }];
  const known = new Set<string>();
  const rules: OriginRule[] = [];
  for (const [i, entry] of written.entries()) {
    const isShort = typeof entry === 'string';
    const { origin, route: text = null, credentials = false } = isShort ? { origin: entry } : entry;
    const here = ['cors', i] as const;
    attempt(report, isShort ? here : [...here, 'origin'], () => checkOrigin(origin));
    if (origin === ANY_ORIGIN && credentials)
      report(
        [...here, 'credentials'],
        '"*" cannot have credentials, because browsers refuse such a reply',
        'name the origins, or remove credentials',
      );
    attempt(report, [...here, 'route'], () => {
      const route = text === null ? null : parseRoute(text, ignoreCase);
      const key = `${origin} ${route?.text}`;
      if (known.has(key)) report(here, `${origin} appears twice`, 'keep one');
      known.add(key);
      rules.push({ origin, route, credentials });
    });
  }
  return rules;
}

/** Browsers send lower case, no port that is the usual one, and no path. Apps and extensions have schemes of their own. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;

/** @throws Mistake */
function checkOrigin(text: string): void {
  const url = text.includes('*') ? null : URL.parse(text);
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (text === ANY_ORIGIN || (isWeb ? url.origin === text : ORIGIN.test(text))) return;
  throw new Mistake(
    `"${text}" is not an origin`,
    `write one as browsers send it, such as ${isWeb ? url.origin : 'https://app.example.org'}, or "*" for all of them`,
  );
}
