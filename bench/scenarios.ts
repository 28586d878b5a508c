/** What is measured. One row a scenario; every target of a row gets the very same requests. */

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly bodyBytes: number;
  /** Distinct API keys, drawn at random; 0: no key is presented, and the address is counted. */
  readonly keys: number;
  /** What the limit lets through: all, or in effect nothing. */
  readonly expect: 'allowed' | 'denied';
  /** How many limits the request counts against. */
  readonly limits: 0 | 1 | 2;
  readonly workers: number;
  /** Its Redis is ended after the start. */
  readonly storeDown: boolean;
  /** Requests a second, evenly paced; null: as many as 64 connections can. */
  readonly rate: number | null;
  readonly peers: readonly PeerName[];
}

export type PeerName =
  | 'floodgate'
  | 'floodgate-bare'
  | 'nginx-plain'
  | 'nginx-limit-req'
  | 'nginx-lua'
  | 'haproxy'
  | 'fastify-rlf'
  | 'fastify-rate-limit'
  | 'express'
  | 'direct';

const ENVIRONMENT = '/api/v1/client/bench/environment';
const RESPONSES = '/api/v1/client/bench/responses';
const SURVEYS = '/api/v1/management/surveys';
const STORAGE = '/api/v1/management/storage';

const LIMITERS: readonly PeerName[] = [
  'floodgate',
  'nginx-lua',
  'nginx-limit-req',
  'haproxy',
  'fastify-rlf',
  'fastify-rate-limit',
  'express',
];
const MANY_KEYS = LIMITERS;
const BODIES: readonly PeerName[] = ['floodgate', 'nginx-lua', 'haproxy', 'fastify-rlf', 'express'];

const HOT: Scenario = {
  name: 'hot',
  title: 'allowed, one hot key',
  method: 'GET',
  path: ENVIRONMENT,
  bodyBytes: 0,
  keys: 0,
  expect: 'allowed',
  limits: 1,
  workers: 1,
  storeDown: false,
  rate: null,
  peers: [...LIMITERS, 'floodgate-bare', 'nginx-plain'],
};

export const SCENARIOS: readonly Scenario[] = [
  HOT,
  { ...HOT, name: 'keys-300', title: 'allowed, 300 keys', path: SURVEYS, keys: 300, peers: ['floodgate'] },
  { ...HOT, name: 'keys-20k', title: 'allowed, 20,000 keys', path: SURVEYS, keys: 20_000, peers: MANY_KEYS },
  {
    ...HOT,
    name: 'keys-100k',
    title: 'allowed, 100,000 keys',
    path: SURVEYS,
    keys: 100_000,
    peers: MANY_KEYS,
  },
  {
    ...HOT,
    name: 'keys-1m',
    title: 'allowed, 1,000,000 keys',
    path: SURVEYS,
    keys: 1_000_000,
    peers: ['floodgate'],
  },
  { ...HOT, name: 'denied', title: 'denied', expect: 'denied', peers: LIMITERS },
  {
    ...HOT,
    name: 'two',
    title: 'two limits at once, proven key',
    method: 'POST',
    path: STORAGE,
    bodyBytes: 100,
    keys: 1,
    limits: 2,
    // @fastify/rate-limit runs once per request, so it cannot do this.
    peers: ['floodgate', 'nginx-lua', 'haproxy', 'fastify-rlf', 'express'],
  },
  {
    ...HOT,
    name: 'post-1k',
    title: 'POST 1 KB',
    method: 'POST',
    path: RESPONSES,
    bodyBytes: 1024,
    peers: BODIES,
  },
  {
    ...HOT,
    name: 'post-1m',
    title: 'POST 1 MB',
    method: 'POST',
    path: RESPONSES,
    bodyBytes: 1_048_576,
    peers: BODIES,
  },
  {
    ...HOT,
    name: 'uncovered',
    title: 'route without a limit',
    path: '/environments/bench/surveys',
    limits: 0,
    peers: ['floodgate', 'nginx-lua', 'haproxy', 'fastify-rlf', 'fastify-rate-limit', 'express'],
  },
  {
    ...HOT,
    name: 'store-down',
    title: 'Redis down, failing open or counting alone',
    storeDown: true,
    peers: ['floodgate', 'nginx-lua', 'fastify-rlf', 'fastify-rate-limit', 'express'],
  },
  {
    ...HOT,
    name: 'workers-2',
    title: 'allowed, one hot key, 2 workers',
    workers: 2,
    peers: ['floodgate', 'nginx-lua', 'haproxy', 'fastify-rlf', 'fastify-rate-limit', 'express'],
  },
  {
    ...HOT,
    name: 'latency',
    title: 'latency at 1,000 requests/s',
    rate: 1000,
    peers: [
      'floodgate',
      'nginx-lua',
      'nginx-limit-req',
      'haproxy',
      'fastify-rlf',
      'fastify-rate-limit',
      'express',
      'direct',
    ],
  },
];

/** Limits that let everything through, and those of the real table that let in effect nothing through. */
export const HIGH_LIMIT = 1_000_000_000;
export const LOW_LIMIT = 100;
export const WINDOW_SECONDS = 60;
export const CONNECTIONS = 64;

export function limitOf(scenario: Scenario): number {
  return scenario.expect === 'allowed' ? HIGH_LIMIT : LOW_LIMIT;
}
