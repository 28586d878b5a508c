/** The kinds of requests whose cost is measured. All peers of a scenario get the same requests. */
import { HIGH_LIMIT } from '#bench/peers/peer.ts';

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly bodyBytes: number;
  /** Number of different API keys; KEY in the path is the number of one. 0: no keys, the address is counted. */
  readonly keys: number;
  /** The key of the first request, if the others follow in order. By default each request has one by chance. */
  readonly firstKey?: number;
  /** Whether the limit admits all requests, or almost none. */
  readonly isDenied: boolean;
  /** The number of limits that a request counts against. */
  readonly limits: 0 | 1 | 2;
  /** Each of them sends a request when it has the reply to the one before. */
  readonly connections: number;
  /** Mean pause of a connection before each request. Default: 0. */
  readonly pauseMs?: number;
  /** The servers that are measured in addition to Floodgate. */
  readonly peers: readonly string[];
}

const SURVEYS = '/api/v1/management/surveys';
/** The limit of the shipped policies. */
const LOW_LIMIT = 100;

const LIMITERS = ['nginx-lua', 'fastify-rate-limit', 'fastify-rlf', 'nginx-limit-req', 'haproxy'];
const CADDY = 'caddy-plain';
const POST = { method: 'POST', path: '/api/v1/client/bench/responses' } as const;
const TWO = { ...POST, path: '/api/v1/management/storage', bodyBytes: 100, keys: 1, limits: 2 } as const;
const UNCOVERED = { path: '/environments/bench/surveys', limits: 0 } as const;

/** Most scenarios have this in common. */
const USUAL: Omit<Scenario, 'name' | 'title' | 'peers'> = {
  ...{ method: 'GET', path: '/api/v1/client/bench/environment', bodyBytes: 0 },
  ...{ keys: 0, isDenied: false, limits: 1, connections: 64 },
};

type Row = readonly [name: string, title: string, peers: readonly string[], differences?: Partial<Scenario>];

const ROWS: readonly Row[] = [
  ['hot', 'allowed, one hot key', [...LIMITERS, CADDY]],
  ['keys-300', 'allowed, 300 keys', LIMITERS, { path: SURVEYS, keys: 300 }],
  ['keys-20k', 'allowed, 20,000 keys', LIMITERS, { path: SURVEYS, keys: 20_000 }],
  ['keys-100k', 'allowed, 100,000 keys', LIMITERS, { path: SURVEYS, keys: 100_000 }],
  ['keys-1m', 'allowed, 1,000,000 keys', [], { path: SURVEYS, keys: 1_000_000 }],
  ['denied', 'denied', LIMITERS, { isDenied: true }],
  ['two', 'two limits at once, proven key', ['nginx-lua', 'fastify-rlf'], TWO],
  ['post-1k', 'POST 1 KB', [...LIMITERS, CADDY], { ...POST, bodyBytes: 1024 }],
  // Floodgate refuses a client that has more of such bodies in waiting.
  ['post-1m', 'POST 1 MB', [...LIMITERS, CADDY], { ...POST, bodyBytes: 1_048_576, connections: 32 }],
  ['uncovered', 'route without a limit', ['nginx-lua', 'fastify-rate-limit', 'haproxy', CADDY], UNCOVERED],
  ['quiet', 'allowed, about 1,000 requests a second', [...LIMITERS, CADDY], { connections: 10, pauseMs: 10 }],
];

export const SCENARIOS = ROWS.map(([name, title, peers, differences]): Scenario => {
  return { ...USUAL, name, title, peers, ...differences };
});

/** Returns the options of a launch that depend on the scenario. */
export function launchOf({ isDenied, limits }: Scenario) {
  return { limit: isDenied ? LOW_LIMIT : HIGH_LIMIT, limits: Math.max(1, limits) };
}
