/** Floods of whole requests: large, strange, or simply many. */
import type { AbuseScenario } from '../scenario.ts';
import { head, invented } from './attacker.ts';

const SURVEYS = '/api/v1/management/surveys';
const ENVIRONMENT = '/api/v1/client/bench/environment';
const RATE = 1500;
const CONNECTIONS = 50;

/** All that some upstream may believe in place of what the gateway decided on. */
export const SMUGGLED: readonly string[] = [
  'X_Api_Key: fbk_valid_smuggled',
  'X_Forwarded_For: 192.0.2.77',
  'X-HTTP-Method-Override: DELETE',
  'X-Original-URL: /admin',
  'X-Rewrite-URL: /admin',
  'Proxy: http://192.0.2.77',
  'X-Forwarded-Port: 1',
];

export const REQUESTS: readonly AbuseScenario[] = [
  {
    name: 'calm',
    title: 'no attack: what the machine itself does to the figures',
    attack: () => undefined,
  },
  {
    name: 'denied-flood',
    title: `one address far over its limit, ${RATE} requests a second`,
    limits: 'shipped',
    admittedPerMinuteMax: 100,
    countsKeys: true,
    attack: (attacker) => attacker.flood(RATE, CONNECTIONS, () => head('GET', ENVIRONMENT)),
  },
  {
    name: 'random-paths',
    title: `paths that nobody asked for before, ${RATE} a second`,
    attack(attacker) {
      const paths = ['/', `${SURVEYS}/`, '/api/v1/client/', '/storage/bench/public/'];
      let i = 0;
      attacker.flood(RATE, CONNECTIONS, () =>
        head('GET', `${paths[i++ % paths.length]}${invented()}?${invented()}`),
      );
    },
  },
  {
    name: 'huge-headers',
    title: 'header sections of 15 KB, 500 a second',
    attack(attacker) {
      const fields = Array.from({ length: 15 }, (_, i) => `X-Large-${i}: ${'y'.repeat(980)}`);
      attacker.flood(500, CONNECTIONS, () => head('GET', '/bench/small', fields));
    },
  },
  {
    name: 'many-headers',
    title: '1,500 header fields a request, 300 a second',
    attack(attacker) {
      const fields = Array.from({ length: 1500 }, (_, i) => `a${i}:b`);
      attacker.flood(300, CONNECTIONS, () => head('GET', '/bench/small', fields));
    },
  },
  {
    name: 'head-and-range',
    title: 'HEAD of large files and requests for many ranges, 1,000 a second',
    attack(attacker) {
      const ranges = `Range: bytes=${Array.from({ length: 200 }, (_, i) => `${i * 3}-${i * 3 + 1}`).join(',')}`;
      let i = 0;
      attacker.flood(1000, CONNECTIONS, () =>
        i++ % 2 === 0 ? head('HEAD', '/bench/download') : head('GET', '/bench/small', [ranges]),
      );
    },
  },
  {
    name: 'two-hosts',
    title:
      'two Host headers, 1,000 a second: refused, and not charged to the visitor behind the same address',
    limits: 'shipped',
    victim: 'visitor',
    targets: ['floodgate'],
    attack: (attacker) =>
      attacker.flood(1000, CONNECTIONS, () => head('GET', ENVIRONMENT, ['Host: other.example'])),
  },
  {
    name: 'smuggled-headers',
    title: 'headers that an upstream may believe, 500 requests a second',
    smuggles: true,
    attack: (attacker) => attacker.flood(500, CONNECTIONS, () => head('GET', '/bench/small', SMUGGLED)),
  },
];
