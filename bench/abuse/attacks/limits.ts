/** Attacks on limits: on those that a client has together with others, and on those whose decision may cost much. */
import { raiseLimits } from '#bench/peers/floodgate.ts';
import { flood, get, inTurn, invented } from '../attacker.ts';
import { ENVIRONMENT, SMALL, scenarios } from '../scenario.ts';

/** All visitors together need less than a quarter of it, and the attacker sends as much in less than a second. */
const SHARED_LIMIT = 1000;
/** The most values that a policy with `distinct` may allow. */
const VALUES = 1000;
const NAMES = Array.from({ length: 16 }, (_, i) => `page-${i}`);
/** With the last one, as many parameters as the gateway reads. Their names must be decoded, and are not on the list. */
const PARAMETERS = Array.from({ length: 999 }, (_, i) => `%70age${i}=${i}`.padEnd(14, 'x')).join('&');

const floodEnvironment = flood(1500, () => get(ENVIRONMENT));
const usedValue = inTurn(Array.from({ length: VALUES }, (_, i) => get(`${SMALL}?page=${i}`)));
/** Each query is new, because the gateway remembers the last one that it read. The wanted name is at its end. */
const longQuery = () => get(`${SMALL}?${PARAMETERS}&${NAMES.at(-1)}=${invented()}`);

export const LIMITS = scenarios({
  'shared-limit': [
    'one address far over its limit, 1,500 requests a second, beside a limit for everyone',
    floodEnvironment,
    {
      admittedPerMinuteMax: 100,
      policies({ policies }) {
        policies.push({
          ...{ name: 'all', route: `GET ${ENVIRONMENT}`, identifier: 'everyone' },
          ...{ limit: SHARED_LIMIT, window: '1m' },
        });
      },
    },
  ],
  newcomer: [
    'one newcomer, 1,500 requests a second; the visitor is a newcomer too',
    floodEnvironment,
    {
      // A client has a twentieth of the limit of newcomers.
      admittedPerMinuteMax: SHARED_LIMIT / 20,
      store: 'week-old',
      policies(file) {
        raiseLimits(file);
        for (const policy of file.policies)
          if (policy.name === 'client-v1-environment')
            policy.newcomers = { limit: SHARED_LIMIT, window: '1m' };
      },
    },
  ],
  'distinct-values': [
    '1,000 values of a client that may use so many, again and again, in three windows, 1,500 requests a second',
    flood(1500, usedValue),
    {
      policies(file) {
        raiseLimits(file);
        file.policies.push({
          ...{ name: 'values', route: `GET ${SMALL}`, identifier: 'ip', distinct: { query: 'page' } },
          limits: ['1m', '1h', 'day'].map((window) => ({ limit: VALUES, window })),
        });
      },
    },
  ],
  'long-queries': [
    'queries of 15 KB with 1,000 parameters, 500 a second, far over the limit of a policy that looks for 16 names',
    flood(500, longQuery),
    {
      admittedPerMinuteMax: 100,
      policies(file) {
        raiseLimits(file);
        file.policies.push({
          ...{ name: 'pages', route: 'GET /*', identifier: 'ip', query: NAMES },
          ...{ limit: 100, window: '1m' },
        });
      },
    },
  ],
});
