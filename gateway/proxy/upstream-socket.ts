/**
 * A connection to the upstream that is heard out: what the upstream said before it closed is read although nothing can
 * be written any more. Node destroys a socket, and with it what has arrived, at the first write that fails; an upstream
 * that answers 413 and closes while the body is still coming would not be heard.
 *
 * What it has written is given back at once, as bodies are written here once and for all: what is sent twice has none.
 *
 * A `100 Continue` that nobody asked for is dropped: undici takes it for an error, RFC 9110 (15.2) lets it pass.
 */
import { Socket } from 'node:net';
import { buildConnector, errors } from 'undici';
import type { Millis } from '#shared/clock.ts';
import { giveBack } from './spent-memory.ts';

interface Chunk {
  chunk: unknown;
  encoding: BufferEncoding;
}

type Written = (error?: Error | null) => void;

const KEEP_ALIVE_PROBE_MS: Millis = 60_000;
const CONTINUE = /^HTTP\/1\.[01] 100[ \r]/;
/** As much of a status line as tells a 100. */
const CONTINUE_BYTES = 13;
/** Where the status stands in a status line. */
const STATUS_AT = 9;
const HEAD_BYTES_MAX = 16_384;
const EMPTY = Buffer.alloc(0);

export class UpstreamSocket extends Socket {
  /** What comes next begins a reply. */
  #replyIsNext = true;
  /** The beginning of what may be a 100. */
  #begun: Buffer = EMPTY;
  #cannotWrite = false;
  #written: Written | null = null;
  /** Of a body, on their way to the kernel; null: none. */
  #chunks: unknown = null;

  /** A request is about to be written. */
  expectReply(): void {
    this.#replyIsNext = true;
  }

  override _write(chunk: unknown, encoding: BufferEncoding, written: Written): void {
    if (this.#cannotWrite) {
      written();
      return;
    }
    this.#written = written;
    if (typeof chunk !== 'string') this.#chunks = chunk;
    super._write(chunk, encoding, this.#onWritten);
  }

  override _writev(chunks: Chunk[], written: Written): void {
    if (this.#cannotWrite) {
      written();
      return;
    }
    this.#written = written;
    this.#chunks = chunks;
    super._writev?.(chunks, this.#onWritten);
  }

  /** A stream writes one thing at a time, so one callback serves all. */
  readonly #onWritten: Written = (error) => {
    const written = this.#written;
    this.#written = null;
    if (this.#chunks !== null) this.#giveBack(this.#chunks);
    const { code } = (error ?? {}) as NodeJS.ErrnoException;
    // The reading side ends by itself, after what has arrived.
    if (code === 'EPIPE' || code === 'ECONNRESET') {
      this.#cannotWrite = true;
      written?.();
    } else written?.(error);
  };

  #giveBack(chunks: unknown): void {
    this.#chunks = null;
    if (Array.isArray(chunks)) for (const { chunk } of chunks as Chunk[]) giveBack(chunk);
    else giveBack(chunks);
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (!this.#replyIsNext) return super.push(chunk, encoding);
    if (chunk === null) {
      if (this.#begun.length > 0) super.push(this.#begun);
      this.#replyIsNext = false;
      return super.push(null);
    }
    let bytes = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk]);
    this.#begun = EMPTY;
    while (bytes.length > 0) {
      // The usual reply: the first digit of its status is another one.
      if (bytes.length >= CONTINUE_BYTES && bytes[STATUS_AT] !== 0x31) {
        this.#replyIsNext = false;
        return super.push(bytes);
      }
      const start = bytes.toString('latin1', 0, CONTINUE_BYTES);
      if (!CONTINUE.test(start)) {
        if (bytes.length < CONTINUE_BYTES && 'HTTP/1.1 100 '.startsWith(start)) break;
        this.#replyIsNext = false;
        return super.push(bytes);
      }
      const end = bytes.indexOf('\r\n\r\n');
      if (end < 0) {
        if (bytes.length < HEAD_BYTES_MAX) break;
        this.#replyIsNext = false;
        return super.push(bytes);
      }
      bytes = bytes.subarray(end + 4);
    }
    this.#begun = bytes;
    return true;
  }
}

/** For http: upstreams. Those with TLS get undici's own sockets, which have neither of the two properties above. */
export function connectPlain(timeoutMs: Millis): buildConnector.connector {
  return ({ hostname, port }, callback) => {
    const socket = new UpstreamSocket();
    let isTold = false;
    const tell = (error: Error | null): void => {
      clearTimeout(timer);
      if (isTold) return;
      isTold = true;
      if (error === null) callback(null, socket);
      else callback(error, null);
    };
    const timer = setTimeout(
      () =>
        socket.destroy(new errors.ConnectTimeoutError(`no connection to the upstream in ${timeoutMs} ms`)),
      timeoutMs,
    );
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    socket.once('connect', () => tell(null)).on('error', tell);
    socket.connect({ host: hostname, port: Number(port) || 80 });
  };
}

export function connectTls(timeoutMs: Millis): buildConnector.connector {
  return buildConnector({
    timeout: timeoutMs,
    // Replies are read as HTTP/1.1 has them: raw headers, 101, connections to count.
    allowH2: false,
  });
}
