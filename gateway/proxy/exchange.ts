/** Interface between a proxy call and a connection: one request to the upstream and its reply. */
import type { Duplex } from 'node:stream';
import { HEADER_ADVICE, sizeText } from '#gateway/http/header-size.ts';
import type { Millis } from '#shared/clock.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** Canonical path and query. */
  readonly target: string;
  /** Alternating names and values, without those of the connection and of the body's length. */
  readonly headers: readonly string[];
  /** A buffer has the announced length. null without a body. */
  readonly body: Buffer | SentBody | null;
  /** The length that the client has announced; null if it has not, and then a body is sent in chunks. */
  readonly contentLength: number | null;
  /** Protocols to switch to, as the client has offered them; null if none. */
  readonly upgrade: string | null;
}

/** A body that is sent while it arrives. */
export interface SentBody {
  /** Calls back once a part of it, or its end, has arrived. */
  whenBegun(then: () => void): void;
  /** Called once, when the connection is ready for the body. */
  start(sink: BodySink): void;
  /** Called when there is room again. */
  onDrain(): void;
  /** Called when the connection needs no more of the body. */
  stop(): void;
}

/** The connection that a body is written to. */
export interface BodySink {
  /** Writes the head of the request alone. Otherwise it goes with the first part. */
  begin(): void;
  /** Writes a part, which may be empty afterwards. @returns false if the next part must wait for `onDrain` */
  write(part: Buffer): boolean;
  end(): void;
}

export interface Exchange {
  pause(): void;
  resume(): void;
  /** Gives up the exchange together with its connection. `onError` follows, possibly before this returns. */
  abort(error: Error): void;
}

/** Called in the order `onBegin`, `onInterim`, `onHead`, `onData`, `onEnd`. `onError` may come at any time and is the last call. */
export interface ExchangeHandler {
  /** @returns false if the request is no longer wanted: it is not sent, and `onError` follows */
  onBegin(exchange: Exchange): boolean;
  /** Called for each interim reply, of which there are few. @param headers alternating names and values */
  onInterim(status: number, reason: string, headers: readonly string[]): void;
  /** Called for the header section of the final reply. @param headers alternating names and values */
  onHead(exchange: Exchange, status: number, reason: string, headers: readonly string[]): void;
  /** Called for each piece of the body. The handler owns its memory. */
  onData(exchange: Exchange, piece: Buffer): void;
  /** Called at the end. The connection can be used again, or it is closed. */
  onEnd(): void;
  /**
   * Called on failure. The connection can be used again, or it is closed.
   *
   * @param begun the readable fields of a header section for which `onHead` was not called, alternating names and values;
   * null if none has begun
   */
  onError(error: Error, begun: readonly string[] | null): void;
  /** Called when the upstream has switched protocols. The handler owns the socket, which is paused. */
  onUpgrade(headers: readonly string[], socket: Duplex): void;
}

export interface UpstreamConnection {
  /** Time when it became idle. */
  idleSince: Millis;
  /** Whether the last request got a new socket, or tried to. */
  readonly isFresh: boolean;
  dispatch(request: UpstreamRequest, handler: ExchangeHandler): void;
  /** Drops the socket; the next request opens a new one. Call it only between two exchanges, or from `onError`. */
  renew(): void;
  /** Called once a second. Closes a socket that has been idle or silent for too long. */
  onTick(now: Millis): void;
  close(): Promise<void>;
}

/** The reply violates HTTP/1.1, or can be read in two ways. */
export class BadReplyError extends Error {
  readonly code = 'UPSTREAM_BAD_REPLY';
}

export class ReplyHeadTooLargeError extends BadReplyError {
  constructor(bytesMax: number) {
    super(
      `the header section of the upstream's reply is larger than ${sizeText(bytesMax)}; ${HEADER_ADVICE}`,
    );
  }
}

/** The upstream closed or reset the connection before the end of its reply. */
export class BrokenReplyError extends Error {
  readonly code: string;

  /** @param isUntouched no byte of the reply had arrived, so the connection may have been closed while it was idle */
  constructor(isUntouched: boolean, options?: ErrorOptions) {
    super('the upstream broke off its reply', options);
    this.code = isUntouched ? 'UPSTREAM_CLOSED' : 'UPSTREAM_BROKEN';
  }
}

export class UpstreamTimeoutError extends Error {
  readonly code = 'ETIMEDOUT';
}
