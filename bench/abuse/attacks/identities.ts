/** Floods of identities: keys that nobody issued, keys made to look proven, addresses without end; and a store in trouble meanwhile. */
import type { AbuseScenario } from '../scenario.ts';
import { type Attacker, head, invented } from './attacker.ts';

const SURVEYS = '/api/v1/management/surveys';
const ENVIRONMENT = '/api/v1/client/bench/environment';
const RATE = 1500;
const CONNECTIONS = 50;
/** The limit of the policy for management routes. */
const LIMIT = 100;
const FLOODGATE = ['floodgate'] as const;

/** Each key so often in a row: if its first request proves it, the others come out of a budget of its own. */
const REQUESTS_PER_KEY = 50;

const key = (): string => `x-api-key: fbk_${invented()}`;

function lastingKeys(): () => string {
  let current = key();
  let used = 0;
  return () => {
    if (used++ % REQUESTS_PER_KEY === 0) current = key();
    return current;
  };
}

function floodWithKeys(
  attacker: Attacker,
  fields: () => readonly string[] = () => [key()],
  path = SURVEYS,
): void {
  attacker.flood(RATE, CONNECTIONS, () => head('GET', path, fields()));
}

export const IDENTITIES: readonly AbuseScenario[] = [
  {
    name: 'long-keys',
    title: 'invented keys of 15 KB, 500 a second',
    limits: 'shipped',
    countsKeys: true,
    admittedPerMinuteMax: LIMIT,
    attack(attacker) {
      const tail = 'k'.repeat(15_000);
      attacker.flood(500, CONNECTIONS, () => head('GET', SURVEYS, [`${key()}${tail}`]));
    },
  },
  {
    name: 'invented-keys',
    title: `invented keys, ${RATE} a second`,
    limits: 'shipped',
    countsKeys: true,
    admittedPerMinuteMax: LIMIT,
    attack: (attacker) => floodWithKeys(attacker),
  },
  {
    name: 'invented-keys-hourly',
    title: `invented keys, ${RATE} a second, windows of an hour, a Redis of 12 MB`,
    limits: 'hourly',
    store: 'small',
    targets: FLOODGATE,
    countsKeys: true,
    admittedPerMinuteMax: LIMIT,
    attack: (attacker) => floodWithKeys(attacker),
  },
  {
    name: 'proof-by-400',
    title: 'invented keys, each 50 times, on a path that the upstream calls malformed',
    limits: 'shipped',
    targets: FLOODGATE,
    countsKeys: true,
    admittedPerMinuteMax: LIMIT,
    attack(attacker) {
      const next = lastingKeys();
      floodWithKeys(attacker, () => [next()], `${SURVEYS}/%ff`);
    },
  },
  {
    name: 'proof-by-connection',
    title: 'invented keys that Connection removes, beside a session that works',
    limits: 'shipped',
    targets: FLOODGATE,
    countsKeys: true,
    admittedPerMinuteMax: LIMIT,
    attack(attacker) {
      const next = lastingKeys();
      floodWithKeys(attacker, () => [next(), 'Connection: keep-alive, x-api-key', 'Cookie: session=real']);
    },
  },
  {
    name: 'proof-by-session',
    title: 'invented keys beside another credential that works',
    limits: 'shipped',
    targets: FLOODGATE,
    countsKeys: true,
    admittedPerMinuteMax: LIMIT,
    attack(attacker) {
      const next = lastingKeys();
      floodWithKeys(attacker, () => [next(), 'Authorization: Bearer session-real']);
    },
  },
  {
    name: 'nat-neighbour',
    title: 'invented keys behind the address of a neighbour whose key has worked before',
    limits: 'shipped',
    victim: 'neighbour',
    targets: FLOODGATE,
    attack: (attacker) => floodWithKeys(attacker),
  },
  {
    name: 'ipv6-spread',
    title: `another /64 in every X-Forwarded-For of a trusted proxy, ${RATE} a second`,
    limits: 'shipped',
    trustsAttacker: true,
    countsKeys: true,
    attack(attacker) {
      let i = 0;
      attacker.flood(RATE, CONNECTIONS, () => {
        i++;
        const prefix = `2001:db8:${(i >>> 16).toString(16)}:${(i & 0xffff).toString(16)}`;
        return head('GET', ENVIRONMENT, [`X-Forwarded-For: ${prefix}::1`]);
      });
    },
  },
  {
    name: 'forwarded-garbage',
    title: `X-Forwarded-For that cannot be read, ${RATE} a second`,
    limits: 'shipped',
    trustsAttacker: true,
    attack(attacker) {
      const chains = [
        'unknown',
        '999.1.1.1',
        '1.2.3.4,'.repeat(500),
        '[::1',
        '::ffff:1.2.3.4.5',
        '%00',
        'a'.repeat(4000),
      ];
      let i = 0;
      attacker.flood(RATE, CONNECTIONS, () =>
        head('GET', ENVIRONMENT, [`X-Forwarded-For: ${chains[i++ % chains.length]}`]),
      );
    },
  },
  {
    name: 'store-frozen',
    title: `invented keys, ${RATE} a second, while Redis stands still for 2 s`,
    limits: 'shipped',
    store: 'frozen',
    targets: FLOODGATE,
    attack: (attacker) => floodWithKeys(attacker),
  },
  {
    name: 'store-restarted',
    title: `invented keys, ${RATE} a second, while Redis is killed and started again`,
    limits: 'shipped',
    store: 'restarted',
    targets: FLOODGATE,
    attack: (attacker) => floodWithKeys(attacker),
  },
  {
    name: 'store-garbled',
    title: 'replies of Redis that make no sense, one in fifty',
    limits: 'shipped',
    store: 'garbled',
    targets: FLOODGATE,
    attack: (attacker) => floodWithKeys(attacker),
  },
];
