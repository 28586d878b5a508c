/** Floods of whole requests: large, strange, or just many. */
import { flood, get, head, inTurn, invented } from '../attacker.ts';
import {
  banning,
  counted,
  DOWNLOAD,
  ENVIRONMENT,
  LOGIN,
  SMALL,
  SURVEYS,
  scenarios,
  shipped,
} from '../scenario.ts';

const pathInTurn = inTurn(['/', `${SURVEYS}/`, '/api/v1/client/', '/storage/bench/public/']);
const LARGE_FIELDS = Array.from({ length: 15 }, (_, i) => `X-Large-${i}: ${'y'.repeat(980)}`);
const MANY_FIELDS = Array.from({ length: 1500 }, (_, i) => `a${i}:b`);
const RANGES = Array.from({ length: 200 }, (_, i) => `${i * 3}-${i * 3 + 1}`).join(',');
/** Some upstreams trust these header fields more than the request line and the standard fields. */
const SMUGGLED = [
  ...['X_Api_Key: fbk_valid_smuggled', 'X_Forwarded_For: 192.0.2.77', 'X-HTTP-Method-Override: DELETE'],
  ...['X-Original-URL: /admin', 'X-Rewrite-URL: /admin', 'Proxy: http://192.0.2.77', 'X-Forwarded-Port: 1'],
];

const headOrRanges = inTurn([head('HEAD', DOWNLOAD), get(SMALL, [`Range: bytes=${RANGES}`])]);
const hasKey = inTurn([false, true]);

const floodWithLogins = flood(1500, () =>
  head('POST', LOGIN, ['Content-Length: 0', ...(hasKey() ? [`x-api-key: fbk_${invented()}`] : [])]),
);

export const REQUESTS = scenarios({
  calm: ['no attack: shows how much the machine itself disturbs the figures', () => undefined],
  'denied-flood': [
    'one address far over its limit, 1,500 requests a second',
    flood(1500, () => get(ENVIRONMENT)),
    counted,
  ],
  'banned-neighbour': [
    'logins, 1,500 a second, until the address is banned and after that; the visitor has the same address, and a key',
    floodWithLogins,
    { ...banning, visitor: 'neighbour' },
  ],
  'banned-stranger': [
    'the same beside a visitor with another address',
    floodWithLogins,
    { ...banning, visitor: 'stranger' },
  ],
  'random-paths': [
    'paths that are new each time, 1,500 a second',
    flood(1500, () => get(`${pathInTurn()}${invented()}?${invented()}`)),
  ],
  'huge-headers': ['header sections of 15 KB, 500 a second', flood(500, () => get(SMALL, LARGE_FIELDS))],
  'many-headers': ['1,500 header fields, 300 requests a second', flood(300, () => get(SMALL, MANY_FIELDS))],
  'head-and-range': [
    'HEAD of large files and requests for many ranges, 1,000 a second',
    flood(1000, headOrRanges),
  ],
  'two-hosts': [
    'two Host headers, 1,000 a second: refused, and not charged to a visitor with the same address',
    flood(1000, () => get(ENVIRONMENT, ['Host: other.example'])),
    { ...shipped, visitor: 'guest' },
  ],
  'smuggled-headers': [
    'headers that an upstream may trust, 500 requests a second',
    flood(500, () => get(SMALL, SMUGGLED)),
    { smuggles: true },
  ],
});
