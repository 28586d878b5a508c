import proxy from '@fastify/http-proxy';
import fastify from 'fastify';

/** Starts a Fastify server that proxies all requests. @param limit registers the limiter before the proxy */
export async function proxyApp({ port, upstream }, limit) {
  const app = fastify({ logger: false, bodyLimit: 16 * 1024 * 1024 });
  await limit(app);
  await app.register(proxy, {
    upstream,
    undici: { connections: 256, pipelining: 1 },
    replyOptions: {
      rewriteRequestHeaders: (req, headers) => ({
        ...headers,
        'x-forwarded-for': req.socket.remoteAddress,
        'x-forwarded-proto': 'http',
        'x-forwarded-host': headers.host,
      }),
    },
  });
  await app.listen({ port, host: '127.0.0.1', backlog: 1024 });
}
