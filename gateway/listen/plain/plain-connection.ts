/**
 * A connection that has had only plain requests so far. The first request that is not plain, or that arrives before the
 * last reply is written, goes to node:http together with the connection.
 */
import type { Socket } from 'node:net';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { free, ownMemory } from '#gateway/http/free-buffer.ts';
import { closeUnlessUsed, lingeringClose } from '#gateway/http/lingering-close.ts';
import { type PieceListener, RequestBody } from '#gateway/http/request-body.ts';
import { hasBody } from '#gateway/http/request-head.ts';
import { REQUEST_TIMEOUT_MS, type Times } from '#gateway/listen/connection/keep-alive.ts';
import { type Pipelining, unitsOf } from '#gateway/listen/connection/pipelining.ts';
import { AWAITED_BYTES_MAX } from '#gateway/proxy/upload.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { PlainRequest, plainHead, withAsciiTarget } from './plain-request.ts';
import { PlainResponse, type ResponseOptions } from './plain-response.ts';

export interface PlainConnectionOptions extends ResponseOptions, Times {
  /** Whether plain requests are read here. Otherwise each connection is handed over with its first bytes. */
  readonly readsRequests: boolean;
  readonly clock: Clock;
  readonly pieces: PieceListener;
  /** Counts the bytes that arrive before the last reply is written. */
  readonly pipelining: Pipelining;
  /** Maximum size of a header section. Default: HEADER_BYTES. */
  readonly headerBytesMax?: number;
  readonly onRequest: (connection: ClientConnection, req: PlainRequest, res: PlainResponse) => void;
  /** Called like node:http's event of this name. */
  readonly onClientError: (error: NodeJS.ErrnoException, socket: Socket) => void;
  /** Gives the connection, with all unused bytes, to node:http. */
  readonly onHandOver: (connection: ClientConnection) => void;
}

/** Tolerance as in node:http. The keep-alive time of the client begins when it has the reply. */
const KEEP_ALIVE_MARGIN_MS: Millis = 1000;

const EMPTY_LINE = '\r\n';

/** A body is small or arrives at once, so the socket is never paused for it. */
const ALWAYS_READS = (): void => undefined;

/** When this number of bytes has arrived before the last reply was written, reading stops. */
const EARLY_BYTES_MAX = 16_384;
/** Maximum number of bytes in the buffer of a paused socket: 64 KiB, and one read of 64 KiB that exceeds them. */
const PAUSED_BYTES_MAX = 131_072;

function incomplete(code: 'HPE_INVALID_EOF_STATE' | 'ERR_HTTP_REQUEST_TIMEOUT'): NodeJS.ErrnoException {
  return Object.assign(new Error('the request is not complete'), { code });
}

export class PlainConnection {
  readonly #options: PlainConnectionOptions;
  readonly #connection: ClientConnection;
  readonly #socket: Socket;
  /** The reply that is due or being written. */
  #response: PlainResponse | null = null;
  /** The body that is arriving. */
  #body: RequestBody | null = null;
  /** Number of bytes of that body that have not arrived. */
  #left = 0;
  /** Bytes that arrived before the last reply was written. */
  #early: Buffer | null = null;
  /** What `#early` counts. */
  #earlyUnits = 0;
  /** Whether the bytes in `#early` arrived before the end of the reply was written. */
  #isPipelined = false;
  #isFresh = true;
  /** Start of the connection, of the current request, or of the wait for the next request. */
  #since: Millis;

  constructor(connection: ClientConnection, options: PlainConnectionOptions) {
    this.#connection = connection;
    this.#socket = connection.socket;
    this.#options = options;
    this.#since = options.clock();
    connection.reader = this;
    this.#socket
      .on('data', this.#onData)
      .on('drain', this.#onDrain)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose);
  }

  /** Whether a reply has been sent, and the next request has not begun. */
  get #isIdle(): boolean {
    return !this.#isFresh && this.#response === null && this.#body === null;
  }

  closeIdle(): void {
    if (this.#isIdle) closeUnlessUsed(this.#socket);
  }

  check(now: Millis): void {
    const { unusedMs, idleMs } = this.#options;
    const waitedMs = now - this.#since;
    // Close without a reply. The client may just send a request, and would take the reply for the answer.
    if (this.#isFresh || this.#isIdle) {
      if (waitedMs >= (this.#isFresh ? unusedMs : idleMs + KEEP_ALIVE_MARGIN_MS))
        closeUnlessUsed(this.#socket);
    } else if (this.#body !== null && waitedMs >= REQUEST_TIMEOUT_MS)
      this.#options.onClientError(incomplete('ERR_HTTP_REQUEST_TIMEOUT'), this.#socket);
  }

  readonly #onData = (chunk: Buffer): void => {
    let bytes = chunk;
    if (this.#body !== null) {
      const rest = bytes.subarray(this.#left);
      this.#receive(this.#body, bytes.subarray(0, this.#left));
      if (rest.length === 0) return;
      bytes = rest;
    }
    // If the connection closes after its reply, drop further bytes.
    if (!this.#socket.writable) return;
    // Some clients send an empty line after a body (RFC 9112 2.2). node:http would take it for the start of a request,
    // which must be complete within 10 s. Behind the beginning of a head it is the end of this head.
    if (this.#early === null && bytes.length === EMPTY_LINE.length && bytes.toString('latin1') === EMPTY_LINE)
      return;
    if (this.#response === null) this.#read(bytes);
    else this.#keepEarly(bytes, !this.#response.isEnded);
  };

  #receive(body: RequestBody, piece: Buffer): void {
    this.#left -= piece.length;
    const isLast = this.#left === 0;
    this.#body = isLast ? null : body;
    if (isLast) this.#since = this.#options.clock();
    body.arrive(piece, isLast);
  }

  #read(bytes: Buffer): void {
    const options = this.#options;
    if (!options.readsRequests) {
      this.#handOver(bytes);
      return;
    }
    const socket = this.#socket;
    const head = plainHead(bytes, options.headerBytesMax);
    const ascii = head === null ? withAsciiTarget(bytes) : null;
    if (ascii !== null) {
      this.#read(ascii);
      return;
    }
    const missingBytes = head === null ? 0 : head.bytes + head.contentLength - bytes.length;
    // Pipelined requests go to node:http, because only there is their number limited. So do uploads, because only
    // node:http stops reading at once: a paused socket first reads up to 64 KiB.
    if (head === null || missingBytes < 0 || (missingBytes > 0 && head.contentLength > AWAITED_BYTES_MAX)) {
      this.#handOver(bytes);
      return;
    }
    this.#isFresh = false;
    this.#since = options.clock();
    const { contentLength } = head;
    const body = hasBody(contentLength, false)
      ? new RequestBody(socket, options.pieces, ALWAYS_READS, false)
      : null;
    const req = new PlainRequest(head, socket, body);
    const res = new PlainResponse(req, head.keepsAlive, options, this.#onWritten);
    this.#response = res;
    if (body !== null) {
      this.#left = contentLength;
      this.#body = body;
      if (bytes.length > head.bytes) this.#receive(body, bytes.subarray(head.bytes));
    }
    options.onRequest(this.#connection, req, res);
  }

  #keepEarly(bytes: Buffer, isPipelined: boolean): void {
    const early = this.#early === null ? bytes : Buffer.concat([this.#early, bytes]);
    this.#early = early;
    this.#isPipelined = isPipelined;
    // A paused socket does not report that the client has left. So go on reading while there is little.
    const isFull = early.length >= EARLY_BYTES_MAX;
    if (isFull) this.#socket.pause();
    const units = unitsOf(early.length + (isFull ? PAUSED_BYTES_MAX : 0));
    if (this.#options.pipelining.take(this.#connection, units - this.#earlyUnits)) {
      this.#earlyUnits = units;
      return;
    }
    // Do not wait for the garbage collector while thousands of connections are cut.
    this.#early = null;
    const memory = ownMemory(early);
    if (memory !== null) free(memory);
  }

  /** Called when the system has accepted the end of the reply. After an error, the socket closes. */
  readonly #onWritten = (error?: Error | null): void => {
    const response = this.#response;
    if (response === null || (error ?? null) !== null) return;
    this.#response = null;
    this.#since = this.#options.clock();
    response.close(true);
    const socket = this.#socket;
    const early = this.#early;
    this.#early = null;
    this.#options.pipelining.give(this.#connection, this.#earlyUnits);
    this.#earlyUnits = 0;
    if (!response.shouldKeepAlive) {
      if (this.#body === null) socket.destroySoon();
      else lingeringClose(socket);
    } else if (early !== null && socket.writable) {
      if (this.#isPipelined) this.#handOver(early);
      else {
        this.#read(early);
        if (this.#early === null) socket.resume();
      }
    }
  };

  #handOver(bytes: Buffer): void {
    const socket = this.#socket;
    socket
      .off('data', this.#onData)
      .off('drain', this.#onDrain)
      .off('end', this.#onEnd)
      .off('error', this.#onError)
      .off('close', this.#onClose);
    this.#connection.reader = null;
    socket.pause();
    socket.unshift(bytes);
    this.#options.onHandOver(this.#connection);
    // node:http stops reading when it has enough of a body. The steps that unshift() has scheduled would make the socket
    // flow before it resumes, and resuming would then start to read again, without an end. So let them pass first.
    queueMicrotask(() => socket.resume());
  }

  readonly #onDrain = (): void => {
    this.#response?.exchange?.call?.onDrain();
  };

  readonly #onEnd = (): void => {
    if (this.#body !== null && this.#response !== null)
      this.#options.onClientError(incomplete('HPE_INVALID_EOF_STATE'), this.#socket);
    else this.#socket.end();
  };

  readonly #onError = (): void => {
    this.#socket.destroy();
  };

  readonly #onClose = (): void => {
    const response = this.#response;
    this.#response = null;
    response?.close(false);
  };
}
