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
import { BrokenReplyError, type ExchangeHandler, UpstreamTimeoutError } from './exchange.ts';
import { type ReplyListener, ReplyParser } from './reply-parser.ts';
import { headOf, type UpstreamRequest } from './request-text.ts';
import type { Rest } from './rest.ts';
import type { Upload } from './upload.ts';
import type { UpstreamAddress } from './upstream-socket.ts';

interface SocketConnectionOptions {
  readonly address: UpstreamAddress;
  readonly clock: Clock;
  readonly connectTimeoutMs: Millis;
  /** How long idle connections are kept. */
  readonly keepAliveMs: Millis;
  /** Maximum size of the header section of a reply. */
  readonly headerBytesMax: number;
  readonly garbage: Garbage;
  readonly rest: Rest;
  readonly onClose: (connection: SocketConnection) => void;
}

const KEEP_ALIVE_PROBE_MS: Millis = 60_000;
/** Pause between two pieces of a reply body. Finite, so that a connection whose peer has vanished is given back. */
const BODY_TIMEOUT_MS: Millis = 300_000;
const GIVEN_UP = new Error('the exchange is given up');
/** Maximum size of head and body that are written as one string. */
const ONE_WRITE_BYTES = 16_384;

/**
 * All sockets read into this buffer (`onread` of node:net), so that a reply needs no stream and little memory. That is
 * safe because libuv reads and calls back in one step, and nothing uses the content after the callback.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536);

/** Large copies do not share their memory with others, so that it can be freed (free-buffer.ts). */
function ownCopy(piece: Buffer): Buffer {
  if (piece.length <= ONE_WRITE_BYTES) return Buffer.from(piece);
  const copy = Buffer.allocUnsafeSlow(piece.length);
  piece.copy(copy);
  return copy;
}

export class SocketConnection implements ReplyListener {
  /** Time when it became idle. */
  idleSince: Millis = 0;
  /** Whether the last request got a new socket, or tried to. */
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
  /** The body that is being sent. */
  #upload: Upload | null = null;

  constructor(options: SocketConnectionOptions) {
    this.#options = options;
    this.#parser = new ReplyParser(options.headerBytesMax, this);
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

  /** Drops the socket; the next request opens a new one. Call it only between two exchanges, or from `onError`. */
  renew(): void {
    const socket = this.#socket;
    this.#forget();
    socket?.destroy();
  }

  /** Called once a second. Closes a socket that has been idle or silent for too long. */
  onTick(now: Millis): void {
    if (this.#socket === null) return;
    if (this.#handler === null) {
      if (now >= this.#expiresAt) this.renew();
    } else if (this.#parser.isInBody && !this.#isPaused && now - this.#readAt >= BODY_TIMEOUT_MS)
      this.#fail(new UpstreamTimeoutError('the upstream sends nothing more of its reply'));
  }

  close(): void {
    this.#options.onClose(this);
    if (this.#handler === null) this.renew();
    else this.abort();
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

  /** Gives up the exchange together with its socket. `onError` follows before this returns. */
  abort(error = GIVEN_UP): void {
    if (this.#handler !== null) this.#fail(error);
  }

  #open({ upgrade }: UpstreamRequest): void {
    const { address, connectTimeoutMs, garbage, headerBytesMax } = this.#options;
    const onread: OnReadOpts = {
      buffer: READ_BUFFER,
      callback: (bytes) => this.#onRead(socket, READ_BUFFER, bytes),
    };
    const socket: Socket = address.open(upgrade === null ? onread : null, garbage);
    if (upgrade !== null) socket.on('data', (bytes: Buffer) => this.#onRead(socket, bytes, bytes.length));
    this.#parser = new ReplyParser(headerBytesMax, this);
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
    if (!handler.onBegin()) {
      this.#handler = null;
      this.#keep();
      handler.onError(new Error('the reply is no longer needed'), false);
      return;
    }
    this.#readAt = this.#options.clock();
    const head = headOf(request);
    if (head === null)
      this.#fail(new Error('the request has a target or a header field that cannot be sent'));
    else this.#send(socket, request, head);
  }

  #send(socket: Socket, { method, body, contentLength, upgrade }: UpstreamRequest, head: string): void {
    if (body !== null && !Buffer.isBuffer(body)) {
      this.#upload = body;
      body.start({
        socket,
        head,
        isChunked: contentLength === null,
        // Bytes that come before the head is written are no reply to it.
        onBegin: () => this.#parser.begin(method),
        onSent: () => {
          this.#upload = null;
          this.#isSent = true;
        },
      });
      return;
    }
    this.#parser.begin(method, upgrade);
    this.#isSent = true;
    if (body === null) socket.write(head, 'latin1');
    else if (body.length <= ONE_WRITE_BYTES) socket.write(head + body.toString('latin1'), 'latin1');
    else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
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

  onInterim(status: number, reason: string, headers: readonly string[]): void {
    this.#handler?.onInterim(status, reason, headers);
  }

  onHead(status: number, reason: string, headers: readonly string[]): void {
    this.#handler?.onHead(status, reason, headers);
  }

  onPiece(piece: Buffer): void {
    this.#handler?.onData(ownCopy(piece));
  }

  onReplyEnd(): void {
    const handler = this.#handler;
    this.#handler = null;
    this.resume();
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
  onSwitch(headers: readonly string[], early: Buffer): void {
    const handler = this.#handler;
    const socket = this.#socket;
    this.#handler = null;
    this.#forget();
    if (socket === null) return;
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
    const { clock, keepAliveMs } = this.#options;
    this.#request = null;
    this.#expiresAt = clock() + keepAliveMs;
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
    handler?.onError(error, this.#parser.hasBegunHead);
  }

  #forget(): void {
    clearTimeout(this.#connectTimer);
    this.#socket = null;
    this.#isResting = false;
    this.#request = null;
    this.#parser.stop();
    this.#upload?.stop();
    this.#upload = null;
  }
}
