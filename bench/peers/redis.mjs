import { Redis } from 'ioredis';

/**
 * The same client for every peer, as their own guides set it up: without automatic pipelining, which would spare Redis
 * and the peer some work under load. A Redis that is down fails at once.
 */
export function redis(port) {
  const client = new Redis(port, '127.0.0.1', {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
  });
  client.on('error', () => {
    // Told to the limiter by every command that fails.
  });
  return new Promise((resolve) => client.once('ready', () => resolve(client)));
}

export const limitedPath = (url) => url.startsWith('/api/');
export const keyOf = (req) => req.headers['x-api-key'] ?? req.socket.remoteAddress;
