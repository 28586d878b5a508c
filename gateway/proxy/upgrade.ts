/**
 * Protocol switches, mostly to WebSocket. The request is admitted like any other. If the upstream replies with 101, the
 * two sockets are joined, and closing one closes the other. Any other reply is forwarded normally.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Client } from '#gateway/bounds/clients.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { writeLast } from '#gateway/http/free-buffer.ts';
import { headText } from '#gateway/http/head-text.ts';
import type { IncomingRequest } from '#gateway/http/incoming-request.ts';
import { endSoon, lingeringClose } from '#gateway/http/lingering-close.ts';
import { OutgoingResponse } from '#gateway/http/outgoing-response.ts';
import { hasBody } from '#gateway/http/request-head.ts';
import { protocolsIn } from './reply-fields.ts';
import { clientHeaders } from './response-headers.ts';
import { Flow, type TransferScheduler } from './transfer-scheduler.ts';

const WEBSOCKET: ReadonlySet<string> = new Set(['websocket']);

/**
 * Whether a request may switch protocols. Other requests are forwarded without the upgrade, which every recipient may
 * ignore (RFC 9110 7.8). If the client offers several protocols, all of them must be allowed: the application chooses
 * one.
 *
 * @param allowed protocols in lower case
 */
export function mayUpgrade(
  req: IncomingMessage,
  connection: ClientConnection | undefined,
  allowed = WEBSOCKET,
): boolean {
  const { headers } = req;
  const { 'content-length': length = '0', 'transfer-encoding': coding, upgrade = '' } = headers;
  const offered = protocolsIn(upgrade);
  return (
    // RFC 6455 4.1. Docker and Kubernetes ask for theirs with POST.
    (req.method === 'GET' || !offered.includes('websocket')) &&
    req.httpVersion === '1.1' &&
    !hasBody(Number(length), coding !== undefined) &&
    offered.every((protocol) => allowed.has(protocol)) &&
    // Replies to earlier pipelined requests must be written first.
    connection !== undefined &&
    connection.pending === null
  );
}

export interface UpgradeSocket {
  readonly protocol: string;
  readonly socket: Duplex;
  /** Bytes that the client has sent after its request. */
  readonly head: Buffer;
  /** Detaches the socket from the response. */
  release(): void;
}

/**
 * Creates a response for a socket that node:http has handed over with its 'upgrade' event and no longer reads. Without an
 * upgrade the connection ends with the reply, because a client sends nothing behind an offer before it is answered.
 */
export function responseFor(req: IncomingRequest, socket: Duplex): OutgoingResponse {
  const res = new OutgoingResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(req.socket);
  // Destroying the socket emits 'close', which aborts the upstream call.
  socket.on('error', () => socket.destroy());
  // Only reading detects that the client has left. read(0) consumes nothing.
  socket.on('readable', peek).on('end', abandon);
  const passDrain = (): void => void res.emit('drain');
  socket.on('drain', passDrain);
  res.once('finish', () => {
    res.detachSocket(req.socket);
    stopWatching(socket);
    socket.off('drain', passDrain);
    lingeringClose(socket);
    // node:http emits 'close' on its own responses too. The exchange then gives back its resources.
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
 * Joins the client's and the upstream's sockets after a 101. Both are read from now on.
 *
 * @param raw alternating names and values of the upstream's reply
 * @param owner client of the tunnel
 * @param onClosed called once, when both sockets are closed, with the bytes that the client was sent behind the 101
 */
export function joinSockets(
  { socket: client, head: clientHead }: UpgradeSocket,
  upstream: Duplex,
  raw: readonly string[],
  added: readonly string[],
  scheduler: TransferScheduler,
  owner: Client,
  onClosed: (sentBytes: number) => void,
): void {
  let open = 2;
  let sentBytes = 0;
  const onClose = (): void => {
    if (--open === 0) onClosed(sentBytes);
  };
  for (const side of [client, upstream]) {
    if (side.closed) onClose();
    else side.once('close', onClose);
  }
  const { headers } = clientHeaders(raw, added, 101, false);
  const head = headText('HTTP/1.1 101 Switching Protocols', ['Connection', 'upgrade', ...headers]);
  stopWatching(client);
  client.write(`${head}\r\n`, 'latin1');
  if (clientHead.length > 0) upstream.write(clientHead);

  // Listens first, because passing a piece on may empty it.
  upstream.on('data', ({ length }: Buffer) => {
    if (client.writable) sentBytes += length;
  });
  for (const [side, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    side.on('error', () => side.destroy());
    // Data that one side sent before closing still reaches the other.
    side.on('end', () => endSoon(other));
    side.on('close', () => endSoon(other));
    passOn(side, other, scheduler, owner);
  }
}

/** Forwards data like `pipe`, but in turn with other bodies. */
function passOn(from: Duplex, to: Duplex, scheduler: TransferScheduler, client: Client): void {
  const flow = new Flow(client, scheduler, from);
  from.on('data', (piece: Buffer) => {
    flow.count(piece.length);
    // If the other side has closed, discard data until this one closes too. Write last, because that empties the piece.
    if (to.writable && !writeLast(to, piece, scheduler)) flow.awaitDrain();
  });
  to.on('drain', () => flow.onDrain());
  from.once('close', () => flow.end());
  from.resume();
}
