/**
 * Protocol switches, WebSocket above all. The request is admitted like any other; when the upstream answers 101 the two
 * sockets are joined, and the end of one is the end of the other. Any other answer goes out as the plain reply it is.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Client } from '#gateway/bounds/clients.ts';
import { type ClientConnection, ClientResponse } from '#gateway/http/client-connection.ts';
import type { IncomingRequest } from '#gateway/http/incoming-request.ts';
import { lingeringClose } from '#gateway/http/lingering-close.ts';
import type { BulkTransfer, BulkTurns } from './bulk-turns.ts';
import { writeLast } from './free-buffer.ts';
import { clientHeaders } from './response-headers.ts';

/**
 * Which requests may switch: GETs that ask for WebSocket and nothing else, in HTTP/1.1 (RFC 9110 7.8). Above all never `h2c`, alone or in a list: a
 * cleartext HTTP/2 connection behind our back would carry requests that nobody counted. Others are plain requests.
 */
export function mayUpgrade(req: IncomingMessage, connection: ClientConnection | undefined): boolean {
  const { headers } = req;
  const bodiless = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
  return (
    req.method === 'GET' &&
    req.httpVersion === '1.1' &&
    bodiless &&
    headers.upgrade?.trim().toLowerCase() === 'websocket' &&
    // An earlier reply of a pipelining client is still due on this connection.
    connection !== undefined &&
    connection.pending === null
  );
}

/** The client's side of a protocol switch. */
export interface UpgradeSocket {
  readonly protocol: string;
  readonly socket: Duplex;
  /** What the client has sent behind its request. */
  readonly head: Buffer;
}

const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/**
 * A response for a socket that node:http has handed over with its 'upgrade' event, and no longer listens to.
 *
 * @param head what the client has sent behind its request; when the upgrade is not taken, it is the next one
 * @param goOn called behind a reply that leaves the connection open, with `head` put back
 */
export function responseFor(
  req: IncomingRequest,
  socket: Duplex,
  head: Buffer,
  goOn: () => void,
): ClientResponse {
  const res = new ClientResponse(req);
  res.shouldKeepAlive = head.length > 0 && !CLOSE.test(req.headers.connection ?? '');
  res.assignSocket(req.socket);
  // 'close' follows, and aborts the upstream call.
  socket.on('error', () => socket.destroy());
  // Without a reader nobody would notice that the client is gone; read(0) takes nothing that belongs to the protocol.
  socket.on('readable', peek).on('end', abandon);
  const passDrain = (): void => void res.emit('drain');
  socket.on('drain', passDrain);
  res.once('finish', () => {
    res.detachSocket(req.socket);
    stopWatching(socket);
    socket.off('drain', passDrain);
    if (res.shouldKeepAlive && !socket.destroyed) {
      socket.unshift(head);
      goOn();
    } else lingeringClose(socket);
    // As node:http does for responses of its own: the exchange gives back what it holds.
    res.emit('close');
  });
  return res;
}

function peek(this: Duplex): void {
  this.read(0);
}

function abandon(this: Duplex): void {
  this.destroy();
}

function stopWatching(socket: Duplex): void {
  socket.off('readable', peek).off('end', abandon);
}

/**
 * Joins the client's and the upstream's socket after a 101.
 *
 * @param raw header fields of the upstream's reply, names and values in turn
 * @param owner whose tunnel it is
 * @param onClosed called once, when both are closed
 */
export function joinSockets(
  { socket: client, head: clientHead }: UpgradeSocket,
  upstream: Duplex,
  raw: readonly string[],
  added: readonly string[],
  turns: BulkTurns,
  owner: Client,
  onClosed: () => void,
): void {
  let open = 2;
  const onClose = (): void => {
    if (--open === 0) onClosed();
  };
  for (const side of [client, upstream]) {
    if (side.closed) onClose();
    else side.once('close', onClose);
  }
  const { headers } = clientHeaders(raw, added, 101, false);
  let head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n';
  for (let i = 0; i < raw.length; i += 2) {
    // Hop-by-hop, but the very point of this reply.
    if (raw[i]?.toLowerCase() === 'upgrade') head += `Upgrade: ${raw[i + 1]}\r\n`;
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
    side.on('end', () => lingeringClose(other));
    side.on('close', () => lingeringClose(other));
    passOn(side, other, turns, owner);
  }
}

/** What `pipe` does, in portions. */
function passOn(from: Duplex, to: Duplex, turns: BulkTurns, client: Client): void {
  let awaitsDrain = false;
  let awaitsTurn = false;
  const goOn = (): void => {
    if (!awaitsDrain && !awaitsTurn) from.resume();
  };
  const transfer: BulkTransfer = {
    client,
    onTurn() {
      awaitsTurn = false;
      goOn();
    },
  };
  from.on('data', (chunk: Buffer) => {
    // The other side has gone: what comes is read and thrown away until this one has gone as well.
    if (!to.writable) return;
    awaitsTurn = !turns.pass(transfer, chunk.length);
    // Last: written, it is empty.
    awaitsDrain = !writeLast(to, to, chunk, turns);
    if (awaitsDrain || awaitsTurn) from.pause();
  });
  to.on('drain', () => {
    awaitsDrain = false;
    goOn();
  });
  from.once('close', () => turns.leave(transfer));
}
