/**
 * Connection options for Redis in both programs. Calls must not wait, so there is no offline queue. Nothing is resent,
 * because a script may already have counted.
 */
import type { RedisOptions } from 'ioredis';
import type { Millis } from './clock.ts';

const CONNECT_TIMEOUT_MS: Millis = 2000;
const RECONNECT_MS_MAX: Millis = 1000;

export const FAIL_FAST = {
  lazyConnect: true,
  connectTimeout: CONNECT_TIMEOUT_MS,
  maxLoadingRetryTime: RECONNECT_MS_MAX,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (attempt: number) => Math.min(25 * 2 ** Math.min(attempt, 6), RECONNECT_MS_MAX),
  // After a failover the old primary answers READONLY; reconnecting finds the new one.
  reconnectOnError: (error: Error) => /\bREADONLY\b/.test(error.message),
} as const satisfies RedisOptions;
