import { Redis } from 'ioredis';

/**
 * The same client for every peer, as their guides set it up: without automatic pipelining, which would save Redis and the
 * peer some work under load. While Redis is down, commands fail at once.
 */
export function redis(port) {
  const client = new Redis(port, '127.0.0.1', {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
  });
  client.on('error', () => {
    // Every command that fails tells the limiter.
  });
  return new Promise((resolve) => client.once('ready', () => resolve(client)));
}

export const limitedPath = (url) => url.startsWith('/api/');
export const keyOf = (req) => req.headers['x-api-key'] ?? req.socket.remoteAddress;
