/**
 * Estimates the cost of a number of clients under a policy file: memory of Redis and of the gateway, and commands of
 * Redis per second. It is an upper bound: every client uses every policy in one window, and no two requests share a
 * script. Pure; a test compares it with a measured run.
 */

import { LEASE_MS } from '#gateway/limiter/algorithms/concurrency.ts';
import { BYTES_PER_RECORD } from '#gateway/limiter/counter-table.ts';
import { type Counter, countersOf } from '#gateway/policy/counter.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import type { Policy, PolicySet } from '#gateway/policy/policy.ts';

interface ForecastOptions {
  /** Number of clients in one window. Each has an address, and one credential for each identifier of credentials. */
  readonly identities: number;
  readonly requestsPerSecond: number;
  readonly processes: number;
}

export interface Forecast {
  readonly identities: number;
  readonly requestsPerSecond: number;
  readonly processes: number;
  /** `used_memory` of a 64-bit Redis with jemalloc. */
  readonly redisBytes: number;
  readonly redisKeys: number;
  /** Resident memory of all processes. */
  readonly processBytes: number;
  /** Commands per second. They include commands of scripts, like `total_commands_processed` of Redis. */
  readonly commandsPerSecond: number;
  /** The memory of counters in Redis. */
  readonly counters: readonly CounterForecast[];
}

interface CounterForecast {
  /** The first policy of the bucket; null for the markers of proven credentials, which last 30 days. */
  readonly policy: string | null;
  /** Whether it counts the usage of addresses with unproven credentials. */
  readonly unproven: boolean;
  readonly keys: number;
  readonly bytes: number;
}

/** Memory of an empty server with a few connections. */
const SERVER_BYTES = 1_048_576;
/** Memory of a key's entries in the dictionary and in that of expiries. */
const ENTRY_BYTES = 32;
const NUMBER_BYTES = 16;
/** Bytes around a key's text. */
const TEXT_BYTES = 4;
/** Memory of the object of a short text. */
const OBJECT_BYTES = 16;
/** A small sorted set is stored as one list. */
const LEASES_BYTES = 7;
const LEASE_BYTES = 32;
/** A recent time. Times and window numbers get another digit only after centuries. */
const TIME_MS = 1.8e12;
/** Memory of a slot in each of the two dictionaries, whose size is the next power of two. */
const PLACE_BYTES = 16;
const DIGEST_LENGTH = 22;
const PREFIX_LENGTH = 'fg:{'.length;
const PROVEN_SUFFIX = '}:proven';

/** Memory of a process under load, with few identities; docs/performance.md. */
const PROCESS_BYTES = 160_000_000;
/** The most counters that a process remembers with a store (limiter/outage.ts). */
const COUNTERS_KNOWN_MAX = 262_144;
const CREDENTIALS_KNOWN_MAX = 65_536;

/** Commands of each check: the script itself, its query of the time, and one command that reads all counters. */
const COMMANDS_PER_SCRIPT = 3;
/** Commands of each check of requests in flight: remove expired leases, count them, and add one. */
const COMMANDS_PER_LEASE = 4;
/** Commands per second of an idle process: one heartbeat, and queries for changes by operators. */
const COMMANDS_PER_PROCESS = 12;

export function forecast(set: PolicySet, options: ForecastOptions): Forecast {
  const { identities, requestsPerSecond, processes } = options;
  const counters = countersOf(set).map((counter): CounterForecast => {
    // The store holds the leases of requests in flight, and of processes that died recently.
    const { algorithm, identifier } = counter.policy;
    const clients = identifier.kind === 'everyone' ? 1 : identities;
    const keys =
      algorithm === 'concurrency'
        ? Math.min(clients, Math.ceil((requestsPerSecond * LEASE_MS) / 1000))
        : clients;
    return {
      policy: counter.policy.name,
      unproven: counter.forUnproven,
      keys,
      bytes: keys * (keyBytes(counter.keySuffix.length) + valueBytes(counter)),
    };
  });
  const credentials = credentialIdentifiers(set) * identities;
  if (credentials > 0) {
    // The value of a proof marker is a small number, for which the server has one shared object.
    const bytes = credentials * keyBytes(PROVEN_SUFFIX.length);
    counters.push({ policy: null, unproven: false, keys: credentials, bytes });
  }
  const redisKeys = counters.reduce((sum, { keys }) => sum + keys, 0);
  const known =
    Math.min(redisKeys - credentials, COUNTERS_KNOWN_MAX) + Math.min(credentials, CREDENTIALS_KNOWN_MAX);
  return {
    identities,
    requestsPerSecond,
    processes,
    redisBytes:
      SERVER_BYTES + counters.reduce((sum, { bytes }) => sum + bytes, 0) + PLACE_BYTES * placesFor(redisKeys),
    redisKeys,
    processBytes: processes * (PROCESS_BYTES + known * BYTES_PER_RECORD),
    commandsPerSecond: Math.ceil(
      processes * COMMANDS_PER_PROCESS + commandsOf(largestCover(set), requestsPerSecond),
    ),
    counters,
  };
}

function keyBytes(suffixLength: number): number {
  return 2 * ENTRY_BYTES + allocated(PREFIX_LENGTH + DIGEST_LENGTH + suffixLength + TEXT_BYTES);
}

/** Returns the size of the largest value of a counter. */
function valueBytes({ policy: { algorithm, limit, capacity, windowMs } }: Counter): number {
  switch (algorithm) {
    case 'fixed-window':
    case 'calendar-window':
      return NUMBER_BYTES;
    case 'sliding-window':
      return textBytes(digits(TIME_MS / windowMs) + 2 * (1 + digits(limit)));
    case 'token-bucket':
      return textBytes(digits(TIME_MS) + 1 + digits(capacity * windowMs));
    case 'concurrency':
      return OBJECT_BYTES + allocated(LEASES_BYTES + LEASE_BYTES);
    default:
      return algorithm satisfies never;
  }
}

/** Returns the size of a text. A short text and its object share one allocation. */
function textBytes(length: number): number {
  return allocated(OBJECT_BYTES + length + TEXT_BYTES);
}

function digits(number: number): number {
  return String(Math.floor(number)).length;
}

/** Rounds up to the size classes of jemalloc. */
function allocated(bytes: number): number {
  const step = bytes <= 128 ? 16 : 32;
  return Math.ceil(bytes / step) * step;
}

function placesFor(keys: number): number {
  return keys === 0 ? 0 : 2 ** Math.ceil(Math.log2(keys));
}

function credentialIdentifiers({ policies }: PolicySet): number {
  const kinds = policies.filter(({ identifier }) => identifier.kind === 'credential');
  return new Set(kinds.map(({ identifier }) => identifier.name)).size;
}

function commandsOf(counters: readonly Counter[], requestsPerSecond: number): number {
  if (counters.length === 0) return 0;
  const leases = counters.filter(({ policy }) => policy.algorithm === 'concurrency').length;
  const release = leases === 0 ? 0 : 1 + leases;
  const written = counters.length - leases;
  return requestsPerSecond * (COMMANDS_PER_SCRIPT + written + leases * COMMANDS_PER_LEASE + release);
}

/** Returns the counters of the cover that has most of them. */
function largestCover(set: PolicySet): readonly Counter[] {
  const match = createMatcher(set);
  let largest: readonly Counter[] = [];
  for (const policy of set.policies) {
    const [method = 'GET'] = policy.route.methods ?? [];
    const found = match(method, samplePath(policy));
    if (!found.ok || found.cover === null) continue;
    const counters = found.cover.counters.map(({ counter }) => counter);
    if (counters.length > largest.length) largest = counters;
  }
  return largest;
}

function samplePath({ route }: Policy): string {
  const parts = route.segments.map((segment) =>
    segment.kind === 'literal' ? encodeURIComponent(segment.text) : 'a',
  );
  return `/${parts.join('/')}`;
}
