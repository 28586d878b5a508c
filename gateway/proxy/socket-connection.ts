/**
 * Connection to the upstream: one socket with one exchange after the other. The next exchange begins only if the last
 * reply was read to its exact end, its request was written completely, and nothing came behind the reply while the
 * connection rested. Otherwise the socket is closed.
 *
 * A request for a protocol switch has a socket of its own, because that of a tunnel must be a stream.
 */
import type { OnReadOpts, Socket } from 'node:net';
import type { Garbage } from '#gateway/http/free-buffer.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { BodyWriter } from './body-writer.ts';
import {
  BrokenReplyError,
  type Exchange,
  type ExchangeHandler,
  type SentBody,
  type UpstreamConnection,
  type UpstreamRequest,
  UpstreamTimeoutError,
} from './exchange.ts';
import { ReadBuffer } from './read-buffer.ts';
import { ReplyParser } from './reply-parser.ts';
import { headOf } from './request-text.ts';
import type { Rest } from './rest.ts';
import type { UpstreamAddress } from './upstream-socket.ts';

interface SocketConnectionOptions {
  readonly address: UpstreamAddress;
  readonly clock: Clock;
  readonly connectTimeoutMs: Millis;
  /** Longest pause between two pieces of a reply body. */
  readonly bodyTimeoutMs: Millis;
  /** How long idle connections are kept if the upstream sends no `Keep-Alive: timeout=…`. */
  readonly keepAliveMs: Millis;
  readonly keepAliveMsMax: Millis;
  /** Idle connections are closed this much before the announced time. */
  readonly keepAliveMarginMs: Millis;
  /** Maximum size of the header section of a reply. */
  readonly headerBytesMax: number;
  readonly garbage: Garbage;
  readonly rest: Rest;
  readonly onClose: () => void;
}

const KEEP_ALIVE_PROBE_MS: Millis = 60_000;
/** Maximum size of head and body that are written as one string. */
const ONE_WRITE_BYTES = 16_384;

export class SocketConnection implements UpstreamConnection, Exchange {
  idleSince: Millis = 0;
  isFresh = false;
  readonly #options: SocketConnectionOptions;
  #socket: Socket | null = null;
  /** Parser of the current socket. */
  #parser: ReplyParser;
  #connectTimer: NodeJS.Timeout | undefined;
  #request: UpstreamRequest | null = null;
  #handler: ExchangeHandler | null = null;
  #isSent = false;
  /** Whether the socket rests after a reply. A request waits until the rest is over. */
  #isResting = false;
  #isPaused = false;
  /** Time when the idle socket must be closed. */
  #expiresAt: Millis = 0;
  #readAt: Millis = 0;
  readonly #buffer = new ReadBuffer();
  /** The body that is being sent. */
  #upload: SentBody | null = null;

  constructor(options: SocketConnectionOptions) {
    this.#options = options;
    this.#parser = this.#parserOf(null);
  }

  dispatch(request: UpstreamRequest, handler: ExchangeHandler): void {
    const needsNew = request.upgrade !== null || this.#options.clock() >= this.#expiresAt;
    if (this.#socket !== null && needsNew) this.renew();
    this.#request = request;
    this.#handler = handler;
    this.#isSent = false;
    this.#isPaused = false;
    this.isFresh = this.#socket === null;
    if (this.#socket === null) this.#open(request);
    else if (!this.#isResting) this.#begin(this.#socket);
  }

  onRested(): void {
    if (!this.#isResting) return;
    this.#isResting = false;
    if (this.#socket !== null) this.#begin(this.#socket);
  }

  renew(): void {
    const socket = this.#socket;
    this.#forget();
    socket?.destroy();
  }

  onTick(now: Millis): void {
    if (this.#socket === null) return;
    if (this.#handler === null) {
      if (now >= this.#expiresAt) this.renew();
    } else if (this.#parser.isInBody && !this.#isPaused && now - this.#readAt >= this.#options.bodyTimeoutMs)
      this.#fail(new UpstreamTimeoutError('the upstream sends nothing more of its reply'));
  }

  async close(): Promise<void> {
    this.#options.onClose();
    if (this.#handler === null) this.renew();
    else this.abort(new Error('the gateway is closing'));
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#socket?.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#readAt = this.#options.clock();
    this.#socket?.resume();
  }

  abort(error: Error): void {
    if (this.#handler !== null) this.#fail(error);
  }

  #open({ upgrade }: UpstreamRequest): void {
    const { address, connectTimeoutMs, garbage } = this.#options;
    this.#buffer.share();
    const onread: OnReadOpts = {
      buffer: () => this.#buffer.current,
      callback: (bytes, buffer) => this.#onRead(socket, buffer as Buffer, bytes),
    };
    const socket: Socket = address.open(upgrade === null ? onread : null, garbage);
    if (upgrade !== null) socket.on('data', (bytes: Buffer) => this.#onRead(socket, bytes, bytes.length));
    this.#parser = this.#parserOf(socket);
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    this.#socket = socket;
    let isReady = false;
    const onLate = (): void => {
      if (isReady) return;
      this.#lose(socket, new UpstreamTimeoutError(`no connection to the upstream in ${connectTimeoutMs} ms`));
    };
    // Timers run before events of sockets, and the connection may have been made during a stall of this process.
    this.#connectTimer = setTimeout(() => setImmediate(onLate), connectTimeoutMs);
    socket
      .on(address.readyEvent, () => {
        isReady = true;
        clearTimeout(this.#connectTimer);
        if (this.#socket === socket) this.#begin(socket);
      })
      .on('drain', () => this.#upload?.onDrain())
      .on('end', () => this.#onEnd(socket))
      .on('error', (error) => this.#lose(socket, error))
      .on('close', () => this.#lose(socket, new BrokenReplyError(false)));
  }

  #begin(socket: Socket): void {
    const handler = this.#handler;
    const request = this.#request;
    if (handler === null || request === null) return;
    if (!handler.onBegin(this)) {
      this.#handler = null;
      this.#keep();
      handler.onError(new Error('the reply is no longer needed'), null);
      return;
    }
    this.#readAt = this.#options.clock();
    const { body } = request;
    const head = headOf(request);
    if (head === null) {
      this.#fail(new Error('the request has a target or a header field that cannot be sent'));
      return;
    }
    if (body === null || Buffer.isBuffer(body)) {
      this.#parser.begin(request.method, request.upgrade);
      this.#isSent = true;
      if (body === null) socket.write(head, 'latin1');
      else if (body.length <= ONE_WRITE_BYTES) socket.write(head + body.toString('latin1'), 'latin1');
      else {
        socket.cork();
        socket.write(head, 'latin1');
        socket.write(body);
        socket.uncork();
      }
    } else {
      this.#upload = body;
      const writer = new BodyWriter(socket, head, request.contentLength === null, {
        // Bytes that come before the head is written are no reply to it.
        onBegin: () => this.#parser.begin(request.method),
        onEnd: () => {
          this.#upload = null;
          this.#isSent = true;
        },
      });
      body.start(writer);
    }
  }

  /** @returns whether to continue reading */
  #onRead(socket: Socket, buffer: Buffer, bytes: number): boolean {
    if (this.#socket !== socket) return false;
    if (this.#handler === null || this.#isResting) {
      // Data without a request is an error of the upstream.
      this.#replace();
      return false;
    }
    this.#readAt = this.#options.clock();
    try {
      this.#parser.read(bytes === buffer.length ? buffer : buffer.subarray(0, bytes));
    } catch (error) {
      this.#lose(socket, error as Error);
      return false;
    }
    return !this.#isPaused;
  }

  /**
   * Returns a parser for the socket. Its listeners do nothing once the socket is given up, even in the middle of
   * parsing.
   */
  #parserOf(socket: Socket | null): ReplyParser {
    return new ReplyParser(this.#options.headerBytesMax, {
      onInterim: (status, reason, headers) => {
        if (this.#socket === socket) this.#handler?.onInterim(status, reason, headers);
      },
      onHead: (status, reason, headers) => {
        if (this.#socket === socket) this.#handler?.onHead(this, status, reason, headers);
      },
      onPiece: (piece) => {
        if (this.#socket === socket) this.#onPiece(piece);
      },
      onReplyEnd: () => {
        if (this.#socket === socket) this.#onReplyEnd();
      },
      onSwitch: (headers, early) => {
        if (this.#socket === socket && socket !== null) this.#handOver(socket, headers, early);
      },
    });
  }

  #onPiece(piece: Buffer): void {
    this.#handler?.onData(this, this.#buffer.take(piece));
  }

  #onReplyEnd(): void {
    const handler = this.#handler;
    this.#handler = null;
    this.resume();
    this.#buffer.share();
    if (this.#isSent && this.#parser.isReusable) {
      this.#isResting = true;
      this.#options.rest.begin(this);
      this.#keep();
    } else {
      // A reset leaves no port in TIME_WAIT. Otherwise many HEAD requests would use up the ports to the upstream.
      if (this.#parser.isSuspect && this.#options.address.canReset) this.#socket?.resetAndDestroy();
      this.renew();
    }
    handler?.onEnd();
  }

  /** Passes the socket on to the tunnel, paused, with the bytes that came behind the reply. */
  #handOver(socket: Socket, headers: readonly string[], early: Buffer): void {
    const handler = this.#handler;
    this.#handler = null;
    this.#forget();
    socket.pause().removeAllListeners('data').removeAllListeners('drain');
    if (early.length > 0) socket.unshift(early);
    handler?.onUpgrade(headers, socket);
  }

  /** Closes a socket without an exchange. If a request waits until it has rested, it gets a new one. */
  #replace(): void {
    const request = this.#request;
    this.renew();
    if (this.#handler === null || request === null) return;
    this.#request = request;
    this.isFresh = true;
    this.#open(request);
  }

  #keep(): void {
    const { clock, keepAliveMs, keepAliveMsMax, keepAliveMarginMs } = this.#options;
    const announced = this.#parser.keepAliveSeconds;
    const keptMs =
      announced === null ? keepAliveMs : Math.min(announced * 1000, keepAliveMsMax) - keepAliveMarginMs;
    this.#request = null;
    this.#expiresAt = clock() + keptMs;
    if (keptMs <= 0) this.renew();
  }

  /** Called when the upstream has ended its side. */
  #onEnd(socket: Socket): void {
    if (this.#socket !== socket) return;
    if (this.#handler === null || this.#isResting) {
      this.#replace();
      return;
    }
    try {
      this.#parser.finish();
    } catch (error) {
      this.#lose(socket, error as Error);
    }
  }

  /** Fails the exchange if this is still the current socket. */
  #lose(socket: Socket, error: Error): void {
    if (this.#socket !== socket) return;
    if (this.#isResting) this.#replace();
    else this.#fail(error);
  }

  #fail(error: Error): void {
    const handler = this.#handler;
    this.#handler = null;
    this.renew();
    handler?.onError(error, this.#parser.begunFields());
  }

  #forget(): void {
    clearTimeout(this.#connectTimer);
    this.#socket = null;
    this.#isResting = false;
    this.#request = null;
    this.#upload?.stop();
    this.#upload = null;
  }
}
