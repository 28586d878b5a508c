/**
 * How both programs connect to their stores. A rate limiter must not wait: there is no offline queue, and nothing is
 * sent twice, because a script that was sent may have counted already.
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
  // After a failover the old primary answers READONLY: look for the new one.
  reconnectOnError: (error: Error) => /\bREADONLY\b/.test(error.message),
} as const satisfies RedisOptions;
