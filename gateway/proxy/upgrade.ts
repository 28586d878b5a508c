/**
 * Protocol switches, WebSocket above all. The request is admitted like any other; when the upstream answers 101 the two
 * sockets are joined, and the end of one is the end of the other. Any other answer goes out as the plain reply it is.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { closeGently } from './drain.ts';
import { ExchangeResponse } from './forward.ts';
import { clientHeaders } from './response-headers.ts';

/**
 * Which requests may switch: GETs that ask for WebSocket and nothing else, in HTTP/1.1 (RFC 9110 7.8). Above all never `h2c`, alone or in a list: a
 * cleartext HTTP/2 connection behind our back would carry requests that nobody counted. Others are plain requests.
 */
export function mayUpgrade(req: IncomingMessage): boolean {
  const { headers } = req;
  const bodiless = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
  return (
    req.method === 'GET' &&
    req.httpVersion === '1.1' &&
    bodiless &&
    headers.upgrade?.trim().toLowerCase() === 'websocket' &&
    // An earlier reply of a pipelining client is still due on this connection.
    pendingResponse(req.socket) === null
  );
}

/** The response that a connection is busy with, as node:http keeps it. */
export function pendingResponse(socket: Duplex): ExchangeResponse | null {
  return (socket as Duplex & { _httpMessage?: ExchangeResponse | null })._httpMessage ?? null;
}

/** A response for a socket that node:http has handed over with its 'upgrade' event, and no longer listens to. */
export function responseFor(req: IncomingMessage, socket: Duplex): ExchangeResponse {
  const res = new ExchangeResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(req.socket);
  // 'close' follows, and aborts the upstream call.
  socket.on('error', () => socket.destroy());
  // Without a reader nobody would notice that the client is gone; read(0) takes nothing that belongs to the protocol.
  socket.on('readable', peek).on('end', abandon);
  socket.on('drain', passDrain);
  res.once('finish', () => {
    res.detachSocket(req.socket);
    stopWatching(socket);
    closeGently(socket);
  });
  return res;
}

function peek(this: Duplex): void {
  this.read(0);
}

function abandon(this: Duplex): void {
  this.destroy();
}

function passDrain(this: Duplex): void {
  pendingResponse(this)?.emit('drain');
}

function stopWatching(socket: Duplex): void {
  socket.off('readable', peek).off('end', abandon).off('drain', passDrain);
}

/** Joins the client's and the upstream's socket after a 101. */
export function join(
  client: Duplex,
  clientHead: Buffer,
  upstream: Duplex,
  controller: Dispatcher.DispatchController,
  added: readonly string[],
): void {
  const raw = (controller.rawHeaders ?? []) as Buffer[];
  const { headers } = clientHeaders(raw, added, false);
  let head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n';
  for (let i = 0; i < raw.length; i += 2) {
    // Hop-by-hop, but the very point of this reply.
    if (raw[i]?.toString('latin1').toLowerCase() === 'upgrade')
      head += `Upgrade: ${raw[i + 1]?.toString('latin1')}\r\n`;
  }
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  stopWatching(client);
  client.write(`${head}\r\n`, 'latin1');
  if (clientHead.length > 0) upstream.write(clientHead);

  for (const [side, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    side.on('error', () => side.destroy());
    // What one side said last still reaches the other.
    side.on('end', () => closeGently(other));
    side.on('close', () => closeGently(other));
    side.pipe(other);
  }
}
