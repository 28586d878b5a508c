/** The key `newcomers`: a limit for all clients together who were not here before. */
import { isNewcomers, type Newcomers } from '#gateway/policy/newcomers.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import { isoTime } from '#shared/clock.ts';
import { policyKey, type Warning } from './key.ts';
import { algorithm, burst, window } from './quota-keys.ts';
import { LIMIT, object } from './schema-parts.ts';

export const newcomers = policyKey({
  schema: object(
    ['limit', 'window'],
    { limit: LIMIT, window: window.schema, algorithm: algorithm.schema, burst: burst.schema },
    'a limit for all clients together who are not regulars, such as { limit: 200, window: 1m }',
  ),
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

/** The words of paths by which people log in or sign up, such as login, sign_up and session. */
const NAMES_LOGIN = /log[-_]?in|sign[-_]?(?:in|up)|regist|auth|session/i;

/** Warns if people who log in or sign up may have to wait behind a swarm. */
function warnOfLogin({ route, except }: LoadedPolicy, { exclude }: PolicySet): Warning | null {
  const takesPosts = route.methods === null || route.methods.has('POST');
  if (!takesPosts || route.segments.at(-1)?.kind !== 'rest') return null;
  const exempt = [except?.unmet ?? '', ...exclude.map(({ text }) => text)];
  if (exempt.some((text) => NAMES_LOGIN.test(text))) return null;
  return [
    'this route may include logins and sign-ups, where newcomers would wait behind a swarm too',
    'exempt the routes of logins and sign-ups with their pages, such as except: ["* /login"]',
  ];
}
