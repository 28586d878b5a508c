/** The key `newcomers`: a limit for all clients together who were not here before. */
import { isNewcomers, type Newcomers } from '#gateway/policy/newcomers.ts';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';
import { coveredBy, type Route } from '#gateway/policy/route.ts';
import { isoTime } from '#shared/clock.ts';
import { policyKey, type Warning, type WholeFile } from './key.ts';
import { algorithm, burst, window } from './quota-keys.ts';
import { LIMIT } from './schema-parts.ts';

export const newcomers = policyKey({
  schema: {
    type: 'object',
    required: ['limit', 'window'],
    properties: { limit: LIMIT, window: window.schema, algorithm: algorithm.schema, burst: burst.schema },
    additionalProperties: false,
    description: 'a limit for all clients together who are not regulars, such as { limit: 200, window: 1m }',
  },
  more: 'See [Regulars first](#regulars-first)',
  counted: ({ onlyFor }) => isNewcomers(onlyFor),
  warn: (policy, file) => (isNewcomers(policy.onlyFor) ? warnOfLogin(policy, file) : null),
  explain: ({ onlyFor }, canBeRegular) =>
    isNewcomers(onlyFor) ? newcomersText(onlyFor, canBeRegular) : null,
});

function newcomersText({ visits, days, actsFrom }: Newcomers, canBeRegular: boolean): string {
  const until =
    actsFrom === null
      ? ''
      : actsFrom === 'unknown'
        ? '; it does not act before the store tells since when clients are known'
        : `; it acts from ${isoTime(actsFrom)}, when enough history exists`;
  const why = canBeRegular
    ? `not counted once the client is a regular, with good replies on ${visits} different days within ${days}`
    : 'its network is under regulars.never, so it never becomes a regular';
  return why + until;
}

/** Segments of paths by which people log in or sign up, such as login, sign_up and wp-login.php. */
const LOGIN =
  /^(?:[^/]*[-_.])?(?:log[-_]?in|sign[-_]?(?:in|up)|register|registration|o?auth2?|sessions?)(?:[-_.][^/]*)?$/i;

/** Warns if people who log in or sign up may have to wait behind a swarm. */
function warnOfLogin(
  { route, except, hosts }: LoadedPolicy,
  { policies, exclude }: WholeFile,
): Warning | null {
  const logins = policies
    .filter((other) => hosts === null || other.hosts?.unmet === hosts.unmet)
    .map((other) => other.route)
    .filter(isLogin);
  const covered = logins.find(
    (login) =>
      coveredBy(login, [route]).length > 0 &&
      coveredBy(login, exclude).length === 0 &&
      except?.holds({ ...ANY_POST, paths: [samplePath(login)] }) !== false,
  );
  const fix = 'exempt the routes of logins and sign-ups with their pages, such as except: ["* /login"]';
  if (covered !== undefined)
    return [`newcomers who log in at ${covered.text} would wait behind a swarm too`, fix];
  const isExempt = except !== null || exclude.some(isLogin);
  if (logins.length > 0 || isExempt || !takesPosts(route) || route.segments.at(-1)?.kind !== 'rest')
    return null;
  return ['this route may include logins and sign-ups, where newcomers would wait behind a swarm too', fix];
}

const ANY_POST = { method: 'POST', target: '', rawHeaders: [], host: '' };

function takesPosts({ methods }: Route): boolean {
  return methods === null || methods.has('POST');
}

function isLogin(route: Route): boolean {
  return takesPosts(route) && route.segments.some((one) => one.kind === 'literal' && LOGIN.test(one.text));
}

/** Returns a path that the route matches. */
function samplePath({ segments }: Route): string {
  const parts = segments.flatMap((one) =>
    one.kind === 'literal' ? one.text : one.kind === 'param' ? 'x' : [],
  );
  return `/${parts.join('/')}`;
}
