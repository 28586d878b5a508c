/**
 * Floods of identities: invented keys, keys that try to become proven, and ever new addresses. Some of these floods run
 * while Redis is disturbed.
 */
import { type Attack, flood, get, head, inTurn, invented } from '../attacker.ts';
import { countByEmail, counted, ENVIRONMENT, RESPONSES, SURVEYS, scenarios, shipped } from '../scenario.ts';

/**
 * Number of requests in a row with one key. If the first one proved the key, the others would use the key's own budget.
 */
const REQUESTS_PER_KEY = 50;
const UNREADABLE = [
  ...['unknown', '999.1.1.1', '1.2.3.4,'.repeat(500), '[::1', '::ffff:1.2.3.4.5', '%00', 'a'.repeat(4000)],
];

const key = (): string => `x-api-key: fbk_${invented()}`;

const floodWithKeys = flood(1500, () => get(SURVEYS, [key()]));

/** @param fields header fields with which the upstream accepts the request, although the key is invented */
function floodWithProofs(fields: readonly string[], path = SURVEYS): Attack {
  let current = key();
  let used = 0;
  return flood(1500, () => {
    if (used++ % REQUESTS_PER_KEY === 0) current = key();
    return get(path, [current, ...fields]);
  });
}

function floodFrom(forwardedFor: () => string): Attack {
  return flood(1500, () => get(ENVIRONMENT, [`X-Forwarded-For: ${forwardedFor()}`]));
}

let networks = 0;

function otherNetwork(): string {
  networks++;
  return `2001:db8:${(networks >>> 16).toString(16)}:${(networks & 0xffff).toString(16)}::1`;
}

function bodyOfAccount(): string {
  const body = JSON.stringify({ email: `${invented()}@example.org` });
  const fields = ['Content-Type: application/json', `Content-Length: ${body.length}`];
  return head('POST', RESPONSES, fields) + body;
}

export const IDENTITIES = scenarios({
  'invented-accounts': [
    'bodies with invented accounts, 1,500 a second',
    flood(1500, bodyOfAccount),
    { ...counted, policies: countByEmail },
  ],
  'long-keys': [
    'invented keys of 15 KB, 500 a second',
    flood(500, () => get(SURVEYS, [`${key()}${'k'.repeat(15_000)}`])),
    counted,
  ],
  'invented-keys': ['invented keys, 1,500 a second', floodWithKeys, counted],
  'proof-by-400': [
    'invented keys, each 50 times, on a path that the upstream calls malformed',
    floodWithProofs([], `${SURVEYS}/%ff`),
    counted,
  ],
  'proof-by-connection': [
    'invented keys that Connection removes, beside a session that works',
    floodWithProofs(['Connection: keep-alive, x-api-key', 'Cookie: session=real']),
    counted,
  ],
  'proof-by-session': [
    'invented keys beside another credential that works',
    floodWithProofs(['Authorization: Bearer session-real']),
    counted,
  ],
  'nat-neighbour': [
    'invented keys from the address of a neighbour whose key worked before',
    floodWithKeys,
    { ...shipped, visitor: 'neighbour' },
  ],
  'ipv6-spread': [
    'another /64 in every X-Forwarded-For of a trusted proxy, 1,500 a second',
    floodFrom(otherNetwork),
    { ...shipped, trustsAttacker: true, countsKeys: true },
  ],
  'forwarded-garbage': [
    'X-Forwarded-For that cannot be read, 1,500 a second',
    floodFrom(inTurn(UNREADABLE)),
    { ...shipped, trustsAttacker: true },
  ],
  'store-frozen': [
    'invented keys, 1,500 a second, while Redis does not respond for 2 s',
    floodWithKeys,
    { ...shipped, store: 'frozen' },
  ],
});
