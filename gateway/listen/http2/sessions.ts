/**
 * HTTP/2 with clients. Each stream becomes an HTTP/1.1 connection in memory, so all requests are decided, counted and
 * bounded in the same way.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import {
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Client } from '#gateway/bounds/clients.ts';
import { request } from '#gateway/http/node-http.ts';
import { PieceCount } from '#gateway/http/piece-count.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { KeepAlive } from '#gateway/listen/connection/keep-alive.ts';
import { SMALL_PIECES } from '#gateway/listen/connection/small-pieces.ts';
import { METHOD_NOT_ALLOWED } from '#gateway/listen/connection/socket-replies.ts';
import { REASONS } from '#gateway/refusals/reasons.ts';
import type { CorsTable } from '#gateway/reply/cors.ts';
import { headersOf, type OwnReply, unreadReply } from '#gateway/reply/own-reply.ts';
import type { Millis } from '#shared/clock.ts';
import { replyHead, requestHead } from './as-http1.ts';
import type { FrameCount, FrameShare } from './frame-share.ts';
import { passBody } from './request-body.ts';
import { connectedEnds } from './stream-socket.ts';

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM, NGHTTP2_NO_ERROR } =
  constants;

/** @param headerBytesMax higher than the limit of the listener, which refuses with a reply */
const optionsFor = (headerBytesMax: number): ServerOptions => ({
  // This limit is higher than 128 fields. The listener refuses more than 128 with a reply.
  maxHeaderListPairs: 160,
  maxSendHeaderBlockLength: headerBytesMax,
  maxSessionMemory: 4,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  // Applications send some fields twice, such as X-Content-Type-Options.
  strictSingleValueFields: false,
  // Clients that open streams only to reset them are cut (CVE-2023-44487). Browsers reset all pictures of a page at
  // once.
  streamResetBurst: 500,
  streamResetRate: 50,
  settings: {
    enablePush: false,
    maxConcurrentStreams: 100,
    maxHeaderListSize: headerBytesMax,
    initialWindowSize: 65_535,
  },
});

const MALFORMED = unreadReply(REASONS.notHttp2);
const NO_STATUS = unreadReply(REASONS.upstreamStatus);
/** The largest status code (RFC 9110 15). */
const STATUS_MAX = 599;
/** Room for names that are longer in HTTP/1.1, and for the gateway's own fields. */
const HEADER_FACTOR = 2;

/** Interval between two checks of sessions that have ended. */
const CHECK_MS: Millis = 1000;
/** Number of checks after the end of a session until its connection is cut. */
const LINGER_CHECKS = 5;

interface Http2Options {
  readonly frames: FrameShare;
  readonly cors: () => CorsTable;
  /** Called with the server's end of the in-memory connection. */
  readonly onStream: (socket: Socket, origin: RequestOrigin) => void;
  /** Called if the body of a stream arrives in too small pieces. */
  readonly onSmallPieces: () => void;
  /** How long connections may be idle. */
  readonly keepAlive: KeepAlive;
  /** Maximum size of a header section in HTTP/1.1. */
  readonly headerBytesMax: number;
}

interface Open {
  readonly socket: TLSSocket;
  /** Number of checks since the session ended. */
  checks: number;
}

export class Http2Sessions {
  readonly #sessions = new Map<ServerHttp2Session, Open>();
  #timer: NodeJS.Timeout | undefined;
  readonly #options: Http2Options;
  readonly #http2: ServerOptions;

  constructor(options: Http2Options) {
    this.#options = options;
    this.#http2 = optionsFor(HEADER_FACTOR * options.headerBytesMax);
  }

  isPenalized(client: string): boolean {
    return this.#options.frames.isPenalized(client);
  }

  /** @param socket after a TLS handshake that chose `h2` */
  begin(socket: TLSSocket, origin: RequestOrigin, client: Client | null): void {
    // The stream ends when the client ends its side.
    socket.allowHalfOpen = false;
    const session = performServerHandshake(socket, this.#http2) as ServerHttp2Session;
    this.#sessions.set(session, { socket, checks: 0 });
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS).unref();
    const count = this.#options.frames.begin(client?.address ?? null, {
      read: () => socket.bytesRead,
      cut: () => socket.destroy(),
    });
    session.once('close', () => socket.destroy());
    socket.once('close', () => {
      this.#sessions.delete(session);
      count.end();
    });
    session.on('error', () => session.destroy());
    const { proxiesMs, clientsMs } = this.#options.keepAlive;
    session.setTimeout(origin.trusted ? proxiesMs : clientsMs, () => session.close());
    session.on('stream', (stream, _headers, _flags, rawHeaders: string[] = []) =>
      this.#serve(stream, rawHeaders, origin, count),
    );
  }

  /** Accepts no further streams; open ones may end. */
  drain(): void {
    for (const session of this.#sessions.keys()) session.close();
  }

  cut(): void {
    for (const { socket } of this.#sessions.values()) socket.destroy();
  }

  /**
   * Cuts connections whose session ended a while ago. A session closes its connection when the peer has read
   * everything, but node:http2 has no timeout for that and does not notice a lost peer.
   */
  #check(): void {
    for (const [session, open] of this.#sessions)
      if (session.destroyed && ++open.checks > LINGER_CHECKS) open.socket.destroy();
    if (this.#sessions.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #serve(
    stream: ServerHttp2Stream,
    rawHeaders: readonly string[],
    origin: RequestOrigin,
    count: FrameCount,
  ): void {
    count.requested();
    stream.on('error', () => stream.destroy());
    const refuse = (reply: OwnReply): void =>
      answer(stream, { ...reply, cors: this.#options.cors().unread(rawHeaders) });
    const head = requestHead(rawHeaders, !stream.endAfterHeaders);
    if (head === null) {
      refuse(METHOD_NOT_ALLOWED);
      return;
    }
    const { server, client } = connectedEnds(origin.peer);
    for (const end of [server, client]) end.on('error', () => end.destroy());
    let call: ClientRequest;
    try {
      call = request({
        createConnection: () => client,
        method: head.method,
        path: head.target,
        headers: [...head.headers],
        maxHeaderSize: HEADER_FACTOR * this.#options.headerBytesMax,
      });
    } catch {
      client.destroy();
      refuse(MALFORMED);
      return;
    }
    // node:http2 keeps a stream, and so the connection, until its body has been read.
    stream.once('aborted', () => {
      call.destroy();
      stream.resume();
    });
    stream.once('close', () => {
      call.destroy();
      client.destroy();
    });
    let isReplied = false;
    const pieces = new PieceCount(0);
    const takes = (bytes: number): boolean => {
      if (pieces.isCut) return false;
      count.received(bytes);
      if (pieces.add(bytes)) return true;
      this.#options.onSmallPieces();
      isReplied = true;
      refuseBody(stream, refuse);
      client.destroy();
      count.cutBody();
      return false;
    };
    call.on('continue', () => {
      if (mayRespond(stream)) stream.additionalHeaders({ ':status': 100 });
    });
    call.on('response', (reply) => {
      reply.once('end', () => {
        isReplied = true;
      });
      passReply(reply, stream, head.method === 'HEAD', refuse);
    });
    call.on('error', () => {
      // If the reply is complete, the rest of the body does not matter.
      if (isReplied || stream.destroyed) return;
      // REFUSED_STREAM tells the client that it may try again, because nothing has been processed (RFC 9113 8.7).
      stream.close(server.bytesRead > 0 ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_REFUSED_STREAM);
    });
    this.#options.onStream(server, origin);
    passBody(stream, call, takes);
  }
}

function passReply(
  reply: IncomingMessage,
  stream: ServerHttp2Stream,
  isHead: boolean,
  refuse: (reply: OwnReply) => void,
): void {
  const { statusCode = 502, rawHeaders } = reply;
  if (!mayRespond(stream)) {
    reply.destroy();
    return;
  }
  if (statusCode > STATUS_MAX) {
    reply.resume();
    refuse(NO_STATUS);
    return;
  }
  const isBodiless = isHead || statusCode === 204 || statusCode === 205 || statusCode === 304;
  reply.on('error', () => stream.close(NGHTTP2_INTERNAL_ERROR));
  // The reply is complete, so the rest of the request's body is not needed (RFC 9113 8.1).
  stream.once('finish', () => {
    if (stream.readableEnded) return;
    stream.close(NGHTTP2_NO_ERROR);
    stream.resume();
  });
  stream.respond(replyHead(statusCode, rawHeaders), { endStream: isBodiless });
  if (isBodiless) reply.resume();
  else reply.pipe(stream);
}

/** Refuses a body that arrives in too small pieces. */
function refuseBody(stream: ServerHttp2Stream, refuse: (reply: OwnReply) => void): void {
  if (mayRespond(stream)) {
    refuse(SMALL_PIECES);
    stream.close(NGHTTP2_NO_ERROR);
  } else if (!stream.writableEnded) stream.close(NGHTTP2_ENHANCE_YOUR_CALM);
}

/** Answers a stream without HTTP/1.1. */
function answer(stream: ServerHttp2Stream, reply: OwnReply): void {
  if (!mayRespond(stream)) return;
  stream.respond(replyHead(reply.status, headersOf(reply)));
  // A reply to HEAD has ended with its header section.
  if (!stream.writableEnded) stream.end(reply.body);
  stream.resume();
}

/** Whether the stream can be answered. Otherwise node:http2 throws. */
function mayRespond({ destroyed, closed, headersSent }: ServerHttp2Stream): boolean {
  return !destroyed && !closed && !headersSent;
}
