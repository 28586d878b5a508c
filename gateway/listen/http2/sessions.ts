/**
 * HTTP/2 with clients. Each stream becomes a connection of HTTP/1.1 in memory, so that there is one way only to decide,
 * count and bound a request; it is as if a proxy for HTTP/2 stood in front, and we knew its clients.
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
import { SMALL_PIECES } from '#gateway/listen/connection/small-pieces.ts';
import { METHOD_NOT_ALLOWED } from '#gateway/listen/connection/socket-replies.ts';
import { ERRORS } from '#gateway/reply/errors.ts';
import { headersOf, type OwnReply, unreadReply } from '#gateway/reply/own-reply.ts';
import type { Millis } from '#shared/clock.ts';
import { replyHead, requestHead } from './as-http1.ts';
import type { FrameCount, FrameShare } from './frame-share.ts';
import { passBody } from './request-body.ts';
import { connectedEnds } from './stream-socket.ts';

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM, NGHTTP2_NO_ERROR } =
  constants;

/** As the other listener keeps a connection on which nothing happens. */
const IDLE_MS: Millis = 65_000;

const OPTIONS: ServerOptions = {
  // A header section of HTTP/1.1 is refused beyond 128 fields, with a reply.
  maxHeaderListPairs: 160,
  maxSessionMemory: 4,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  // Applications send some fields twice, such as X-Content-Type-Options. HTTP/1.1 passes them on as well.
  strictSingleValueFields: false,
  // Whoever opens streams only to reset them is cut (CVE-2023-44487); browsers reset a page of pictures at a time.
  streamResetBurst: 500,
  streamResetRate: 50,
  settings: {
    enablePush: false,
    maxConcurrentStreams: 100,
    maxHeaderListSize: 32_768,
    initialWindowSize: 65_535,
  },
};

const MALFORMED = unreadReply('gateway_bad_request', 'the request is not valid HTTP/2');
const NO_STATUS = unreadReply(
  'gateway_upstream_unavailable',
  'the upstream answered with a status that HTTP/2 does not know',
);
/** RFC 9110 15. */
const STATUS_MAX = 599;
/** More than a reply of the application may have, and what the gateway adds. */
const HEADER_BYTES_MAX = 32_768;

/** Between two looks at sessions that have ended. */
const CHECK_MS: Millis = 1000;
/** So many of them has the last that was written, then the connection is cut. */
const LINGER_CHECKS = 5;

interface Http2Options {
  readonly frames: FrameShare;
  /** Is given the end on which a request in HTTP/1.1 comes. */
  readonly onStream: (socket: Socket, origin: RequestOrigin) => void;
  /** The body of a stream came in too small pieces. */
  readonly onSmallPieces: () => void;
}

interface Open {
  readonly socket: TLSSocket;
  /** Looks since its session ended. */
  checks: number;
}

export class Http2Sessions {
  readonly #sessions = new Map<ServerHttp2Session, Open>();
  #timer: NodeJS.Timeout | undefined;
  readonly #options: Http2Options;

  constructor(options: Http2Options) {
    this.#options = options;
  }

  /** @param socket secured, with `h2` agreed on */
  begin(socket: TLSSocket, origin: RequestOrigin, client: Client | null): void {
    // No stream outlives the end of what the client sends.
    socket.allowHalfOpen = false;
    const session = performServerHandshake(socket, OPTIONS) as ServerHttp2Session;
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
    session.setTimeout(IDLE_MS, () => session.close());
    session.on('stream', (stream, _headers, _flags, rawHeaders: string[] = []) =>
      this.#serve(stream, rawHeaders, origin, count),
    );
  }

  /** Takes no further streams; those that are open end first. */
  drain(): void {
    for (const session of this.#sessions.keys()) session.close();
  }

  cut(): void {
    for (const { socket } of this.#sessions.values()) socket.destroy();
  }

  /**
   * A session that has ended closes its connection once the peer has taken what was written. node:http2 sets no end to
   * that, and does not notice a peer that is gone.
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
    const head = requestHead(rawHeaders, !stream.endAfterHeaders);
    if (head === null) {
      answer(stream, METHOD_NOT_ALLOWED);
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
        maxHeaderSize: HEADER_BYTES_MAX,
      });
    } catch {
      client.destroy();
      answer(stream, MALFORMED);
      return;
    }
    // node:http2 keeps a stream, and its connection with it, as long as some of its body has not been read.
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
      refuseBody(stream);
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
      passReply(reply, stream, head.method === 'HEAD');
    });
    call.on('error', () => {
      // That no more of the body is taken does not spoil an answer.
      if (isReplied || stream.destroyed) return;
      // Cut before an answer: the client may try again.
      stream.close(stream.headersSent ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_REFUSED_STREAM);
    });
    this.#options.onStream(server, origin);
    passBody(stream, call, takes);
  }
}

function passReply(reply: IncomingMessage, stream: ServerHttp2Stream, isHead: boolean): void {
  const { statusCode = 502, rawHeaders } = reply;
  if (!mayRespond(stream)) {
    reply.destroy();
    return;
  }
  if (statusCode > STATUS_MAX) {
    reply.resume();
    answer(stream, NO_STATUS);
    return;
  }
  const isBodiless = isHead || statusCode === 204 || statusCode === 205 || statusCode === 304;
  reply.on('error', () => stream.close(NGHTTP2_INTERNAL_ERROR));
  // The answer is whole; of a body that is still coming nothing more is wanted (RFC 9113 8.1).
  stream.once('finish', () => {
    if (stream.readableEnded) return;
    stream.close(NGHTTP2_NO_ERROR);
    stream.resume();
  });
  stream.respond(replyHead(statusCode, rawHeaders), { endStream: isBodiless });
  if (isBodiless) reply.resume();
  else reply.pipe(stream);
}

/** Answers a body that comes in too small pieces, unless a reply has begun. */
function refuseBody(stream: ServerHttp2Stream): void {
  if (mayRespond(stream)) {
    answer(stream, SMALL_PIECES);
    stream.close(NGHTTP2_NO_ERROR);
  } else if (!stream.writableEnded) stream.close(NGHTTP2_ENHANCE_YOUR_CALM);
}

/** What is refused before it can become a request of HTTP/1.1, or after it was one. */
function answer(stream: ServerHttp2Stream, reply: OwnReply): void {
  if (!mayRespond(stream)) return;
  stream.respond(replyHead(ERRORS[reply.code].status, headersOf(reply)));
  // A reply to HEAD has ended with its header section.
  if (!stream.writableEnded) stream.end(reply.body);
  stream.resume();
}

/** Otherwise node:http2 throws. */
function mayRespond({ destroyed, closed, headersSent }: ServerHttp2Stream): boolean {
  return !destroyed && !closed && !headersSent;
}
