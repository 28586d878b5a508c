import { Redis } from 'ioredis';

/**
 * Creates the Redis client for all Node peers, as their guides do. Automatic pipelining is off. It would save Redis and
 * the peer some work under load. While Redis is down, commands fail at once.
 */
export function redis(port) {
  const client = new Redis(port, '127.0.0.1', {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
  });
  client.on('error', () => {
    // The limiter gets the error from each command that fails.
  });
  return new Promise((resolve) => client.once('ready', () => resolve(client)));
}

export const limitedPath = (url) => url.startsWith('/api/');
export const keyOf = (req) => req.headers['x-api-key'] ?? req.socket.remoteAddress;
