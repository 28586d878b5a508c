/** One request to the upstream and its reply, as a proxy call and a connection see each other. */
import type { Duplex } from 'node:stream';
import type { Millis } from '#shared/clock.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** Canonical path and query. */
  readonly target: string;
  /** Names and values in turn; a `Content-Length` among them is that of the body. */
  readonly headers: readonly string[];
  /** null: there is none. A stream without a `Content-Length` is sent in chunks. */
  readonly body: Buffer | AsyncIterable<Buffer> | null;
  /** The protocol to switch to; null: none. */
  readonly upgrade: string | null;
}

/** A reply on its way. */
export interface Exchange {
  pause(): void;
  resume(): void;
  /** Gives up the exchange, and the connection with it. `onError` follows, perhaps before this returns. */
  abort(error: Error): void;
}

/** Hears of one exchange: `onBegin`, `onHead`, `onData` and `onEnd` in this order, or `onError` at any time instead. */
export interface ExchangeHandler {
  /** @returns false: nobody wants the request any more; it is not sent, and `onError` follows */
  onBegin(exchange: Exchange): boolean;
  /**
   * The head of the final reply.
   *
   * @param headers names and values in turn
   */
  onHead(exchange: Exchange, status: number, reason: string, headers: readonly string[]): void;
  /** The handler keeps the piece: nobody else writes to its memory. */
  onData(exchange: Exchange, piece: Buffer): void;
  /** The connection is free again, or gone. */
  onEnd(): void;
  /** The connection is free again, or gone. */
  onError(error: Error): void;
  /** The upstream has switched protocols; the socket is the handler's. */
  onUpgrade(status: number, headers: readonly string[], socket: Duplex): void;
}

export interface UpstreamConnection {
  /** When it was given back. */
  idleSince: Millis;
  /** The last request had a socket opened for it, or would have had one. */
  readonly isFresh: boolean;
  dispatch(request: UpstreamRequest, handler: ExchangeHandler): void;
  /** Gives up the socket: the next request opens another one. Only between two exchanges, or from `onError`. */
  renew(): void;
  /** Called once a second: closes what has been idle, or silent, for too long. */
  onTick(now: Millis): void;
  close(): Promise<void>;
}

/** The upstream did something else than HTTP/1.1 allows, or something that can be read in two ways. */
export class BadReplyError extends Error {
  readonly code = 'UPSTREAM_BAD_REPLY';
}

export const REPLY_HEAD_BYTES_MAX = 16_384;

export class ReplyHeadTooLargeError extends BadReplyError {
  constructor(options?: ErrorOptions) {
    super(
      `the header section of the upstream's reply is larger than ${REPLY_HEAD_BYTES_MAX / 1024} KiB`,
      options,
    );
  }
}

/** The upstream closed the connection, or broke it off, before the end of its reply. */
export class BrokenReplyError extends Error {
  readonly code: string;

  /** @param isUntouched not a byte of the reply had come: the connection may have been closed while it was idle */
  constructor(isUntouched: boolean, options?: ErrorOptions) {
    super('the upstream broke off its reply', options);
    this.code = isUntouched ? 'UPSTREAM_CLOSED' : 'UPSTREAM_BROKEN';
  }
}

export class UpstreamTimeoutError extends Error {
  readonly code = 'ETIMEDOUT';
}
