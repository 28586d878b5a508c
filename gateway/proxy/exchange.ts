/** The reply to one request, as the connection tells the call about it. */
import type { Duplex } from 'node:stream';

/** Called in the order `onBegin`, `onInterim`, `onHead`, `onData`, `onEnd`. `onError` may come at any time and is the last call. */
export interface ExchangeHandler {
  /** @returns false if the request is no longer wanted: it is not sent, and `onError` follows */
  onBegin(): boolean;
  /** Called for each interim reply, of which there are few. @param headers alternating names and values */
  onInterim(status: number, reason: string, headers: readonly string[]): void;
  /** Called for the header section of the final reply. @param headers alternating names and values */
  onHead(status: number, reason: string, headers: readonly string[]): void;
  /** Called for each piece of the body. The handler owns its memory. */
  onData(piece: Buffer): void;
  /** Called at the end. The connection can be used again, or it is closed. */
  onEnd(): void;
  /**
   * Called on failure. The connection can be used again, or it is closed.
   *
   * @param hasBegun whether a header section has begun for which `onHead` was not called
   */
  onError(error: Error, hasBegun: boolean): void;
  /** Called when the upstream has switched protocols. The handler owns the socket, which is paused. */
  onUpgrade(headers: readonly string[], socket: Duplex): void;
}

/** The reply violates HTTP/1.1, or can be read in two ways. */
export class BadReplyError extends Error {
  readonly code = 'UPSTREAM_BAD_REPLY';
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
