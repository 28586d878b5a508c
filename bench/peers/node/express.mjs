/** Express with express-rate-limit. It counts fixed windows in Redis, for all machines together. */
import { Agent } from 'node:http';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { RedisStore } from 'rate-limit-redis';
import { keyOf, redis } from './redis.mjs';

export async function start({ port, upstream, redisPort, limit, limits, windowSeconds }) {
  const client = await redis(redisPort);
  const app = express();
  app.disable('x-powered-by');
  for (let i = 0; i < limits; i++) {
    const limiter = rateLimit({
      windowMs: windowSeconds * 1000,
      limit,
      standardHeaders: i === 0,
      legacyHeaders: i === 0,
      passOnStoreError: true,
      keyGenerator: keyOf,
      validate: false,
      store: new RedisStore({
        prefix: `rl${i}:`,
        sendCommand: (command, ...args) => client.call(command, ...args),
      }),
    });
    app.use('/api', limiter);
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 256, maxFreeSockets: 256 });
  app.use(createProxyMiddleware({ target: upstream, xfwd: true, agent }));
  await new Promise((resolve) => app.listen(port, '127.0.0.1', 1024, resolve));
}
