/** Starts a reverse proxy in front of a gateway, with or without TLS, that appends to X-Forwarded-For. */
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Identity } from './certificates.ts';
import type { Owner } from './gateway.ts';
import { listen } from './listen.ts';

/** @returns the port of the proxy */
export async function startFrontProxy(
  owner: Owner,
  to: number,
  identity: Identity | null = null,
): Promise<number> {
  const forward: RequestListener = (req, res) => {
    const chain = [req.headers['x-forwarded-for'], req.socket.remoteAddress].filter(Boolean).join(', ');
    const headers = { ...req.headers, 'x-forwarded-for': chain };
    const call = request(
      { host: '127.0.0.1', port: to, method: req.method, path: req.url, headers },
      (reply) => {
        res.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(res);
      },
    );
    call.on('error', () => res.destroy());
    req.pipe(call);
  };
  const server =
    identity === null
      ? createServer(forward)
      : createTlsServer({ cert: readFileSync(identity.cert), key: readFileSync(identity.key) }, forward);
  const port = await listen(owner, server);
  return port;
}
