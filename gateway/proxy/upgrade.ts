/**
 * Protocol switches, WebSocket above all. The request is admitted like any other; when the upstream answers 101 the two
 * sockets are joined, and the end of one is the end of the other. Any other answer goes out as the plain reply it is.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { ExchangeResponse } from './forward.ts';
import { clientHeaders } from './response-headers.ts';

/**
 * Which requests may switch: plain GETs. `h2c` never: a cleartext HTTP/2 connection behind our back would carry
 * requests that nobody counted.
 */
export function mayUpgrade(req: IncomingMessage): boolean {
  const protocol = req.headers.upgrade?.trim().toLowerCase();
  const bodiless =
    req.headers['content-length'] === undefined && req.headers['transfer-encoding'] === undefined;
  return req.method === 'GET' && bodiless && protocol !== undefined && !protocol.startsWith('h2');
}

/** A response for a socket that node:http has handed over with its 'upgrade' event. */
export function responseFor(req: IncomingMessage, socket: Duplex): ExchangeResponse {
  const res = new ExchangeResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(req.socket);
  res.once('finish', () => {
    res.detachSocket(req.socket);
    socket.end();
  });
  return res;
}

/** Joins the client's and the upstream's socket after a 101. */
export function join(
  client: Duplex,
  clientHead: Buffer,
  upstream: Duplex,
  controller: Dispatcher.DispatchController,
  added: readonly string[],
): void {
  const { headers } = clientHeaders((controller.rawHeaders ?? []) as Buffer[], added, false);
  const raw = (controller.rawHeaders ?? []) as Buffer[];
  let head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n';
  for (let i = 0; i < raw.length; i += 2) {
    // Hop-by-hop, but the very point of this reply.
    if (raw[i]?.toString('latin1').toLowerCase() === 'upgrade')
      head += `Upgrade: ${raw[i + 1]?.toString('latin1')}\r\n`;
  }
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  client.write(`${head}\r\n`, 'latin1');
  if (clientHead.length > 0) upstream.write(clientHead);

  const end = (): void => {
    client.destroy();
    upstream.destroy();
  };
  for (const socket of [client, upstream]) {
    socket.on('error', end);
    socket.on('close', end);
  }
  client.pipe(upstream);
  upstream.pipe(client);
}
