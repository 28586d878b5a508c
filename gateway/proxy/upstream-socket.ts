/** Opens sockets to the upstream: TCP, TLS, or a Unix socket. */
import { isIP, type OnReadOpts, Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { free, type Garbage, ownMemory } from '#gateway/http/free-buffer.ts';
import { unixPart } from '#shared/unix-socket.ts';

type Written = (error?: Error | null) => void;

export class UpstreamAddress {
  /** The event of a socket on which a request can be sent. */
  readonly readyEvent: 'connect' | 'secureConnect';
  /** Whether a reset spares a port. Node cannot reset TLS, and Unix sockets have no port. */
  readonly canReset: boolean;
  readonly #target: { readonly host: string; readonly port: number } | { readonly path: string };
  readonly #isTls: boolean;
  /** The last TLS session. Resuming it makes the next handshake cheaper. */
  #session: Buffer | undefined;

  constructor(origin: string) {
    const path = unixPart(origin);
    const url = new URL(path === null ? origin : 'http://localhost');
    const isTls = url.protocol === 'https:';
    this.#isTls = isTls;
    this.readyEvent = isTls ? 'secureConnect' : 'connect';
    this.canReset = path === null && !isTls;
    const host = url.hostname.replace(/^\[|\]$/g, '');
    this.#target = path === null ? { host, port: Number(url.port) || (isTls ? 443 : 80) } : { path };
  }

  /** @param onread buffer to read into; null for a socket that is read as a stream */
  open(onread: OnReadOpts | null, garbage: Garbage): Socket {
    const socket = this.#isTls ? this.#openTls(onread) : new Socket(onread === null ? {} : { onread });
    keepReading(socket, garbage);
    if (!this.#isTls) socket.connect(this.#target);
    return socket;
  }

  #openTls(onread: OnReadOpts | null): Socket {
    const host = 'host' in this.#target ? this.#target.host : '';
    // Node checks the certificate against the server name, or else against the host. Never against the Host of a
    // request, which clients choose.
    const options: ConnectionOptions & { onread?: OnReadOpts } = {
      ...this.#target,
      ALPNProtocols: ['http/1.1'],
      // TLS server names must not be IP addresses (RFC 6066 3).
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(this.#session === undefined ? {} : { session: this.#session }),
      ...(onread === null ? {} : { onread }),
    };
    return connectTls(options).on('session', (session) => {
      this.#session = session;
    });
  }
}

/**
 * Makes a socket readable even after a failed write. Node destroys a socket at the first failed write, together with
 * received data. So the reply of an upstream that sends 413 and closes during an upload would be lost.
 *
 * Written buffers are freed at once: a large one is empty after the write.
 */
export function keepReading(socket: Socket, garbage: Garbage): void {
  const write = socket._write.bind(socket);
  const writev = socket._writev?.bind(socket);
  let cannotWrite = false;
  // A stream has at most one write in progress, so one callback is enough.
  let written: Written | null = null;
  let memory: ArrayBuffer | null = null;
  const onWritten: Written = (error) => {
    const done = written;
    const used = memory;
    written = null;
    memory = null;
    // Do not free the buffer after an error, because the kernel may still be using it.
    if (used !== null && error == null) garbage.freed(free(used));
    const { code } = (error ?? {}) as NodeJS.ErrnoException;
    // Keep reading. The readable side ends after the received data.
    if (code === 'EPIPE' || code === 'ECONNRESET') {
      cannotWrite = true;
      done?.();
    } else done?.(error);
  };
  /** @param last piece of a body comes last, after the head or the size of a chunk */
  const begin = (last: unknown, done: Written): boolean => {
    if (cannotWrite) {
      done();
      return false;
    }
    written = done;
    memory = ownMemory(last);
    return true;
  };
  socket._write = (chunk, encoding, done) => {
    if (begin(chunk, done)) write(chunk, encoding, onWritten);
  };
  socket._writev = (chunks, done) => {
    if (begin(chunks.at(-1)?.chunk, done)) writev?.(chunks, onWritten);
  };
}
