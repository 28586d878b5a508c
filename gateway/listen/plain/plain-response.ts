/**
 * Writes the reply to a plain request. Its header section and a short body are one string, and so one write. If the
 * reply does not have its announced length, the connection is closed, because its client could mistake the rest for the
 * next reply. Whoever makes the fields answers for their characters: the parser of replies, and the policy file.
 */

import type { Socket } from 'node:net';
import type { ClientResponse, Exchange } from '#gateway/http/client-exchange.ts';
import type { DateField } from '#gateway/http/date-field.ts';
import { CLOSE } from '#gateway/http/hop-by-hop.ts';
import { STATUS_CODES } from '#gateway/http/node-http.ts';
import type { SharedReply } from '#gateway/http/shared-reply.ts';
import type { PlainRequest } from './plain-request.ts';

export interface ResponseOptions {
  readonly date: DateField;
  /** Value of the Keep-Alive field. */
  readonly keepAlive: string;
}

export class PlainResponse implements ClientResponse {
  readonly req: PlainRequest;
  exchange: Exchange | null = null;
  entry: ClientResponse['entry'] = null;
  socket: Socket | null;
  shouldKeepAlive: boolean;
  headersSent = false;
  /** Whether `end` was called, so that no more of the reply will be written. */
  isEnded = false;
  writableFinished = false;
  destroyed = false;
  statusCode = 200;
  readonly #options: ResponseOptions;
  readonly #onWritten: (error?: Error | null) => void;
  /** The status line and the fields so far; '' once they are written. */
  #head = '';
  /** Value of Connection; null if the response chooses it. */
  #connection: string | null = null;
  #hasDate = false;
  #hasBody = true;
  /** Number of body bytes still to be written; null if it is written in chunks. */
  #left: number | null = null;
  #isOver = false;
  #listeners: (() => void)[] | null = null;

  /** @param onWritten called when the system has accepted the end of the reply, or with an error */
  constructor(
    req: PlainRequest,
    keepsAlive: boolean,
    options: ResponseOptions,
    onWritten: (error?: Error | null) => void,
  ) {
    this.req = req;
    this.socket = req.socket;
    this.shouldKeepAlive = keepsAlive;
    this.#options = options;
    this.#onWritten = onWritten;
  }

  get writableLength(): number {
    return this.socket?.writableLength ?? 0;
  }

  once(_event: 'close' | 'finish', listener: () => void): void {
    this.#listeners ??= [];
    this.#listeners.push(listener);
  }

  writeHead(status: number, headers: string[]): void;
  writeHead(status: number, reason: string, headers: string[]): void;
  writeHead(status: number, reason: string | string[], fields: string[] = []): void {
    if (this.headersSent) throw new Error('the head of the reply is already written');
    const headers = typeof reason === 'string' ? fields : reason;
    const text = typeof reason === 'string' ? reason : (STATUS_CODES[status] ?? '');
    this.headersSent = true;
    this.statusCode = status;
    this.#hasBody = this.req.method !== 'HEAD' && status !== 204 && status !== 304;
    let head = `HTTP/1.1 ${status} ${text}\r\n`;
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] ?? '';
      const value = headers[i + 1] ?? '';
      switch (name.toLowerCase()) {
        case 'connection':
          if (CLOSE.test(value)) this.shouldKeepAlive = false;
          this.#connection = value;
          continue;
        case 'date':
          this.#hasDate = true;
          break;
        case 'content-length':
          this.#left = Number(value);
          break;
      }
      head += `${name}: ${value}\r\n`;
    }
    this.#head = head;
  }

  flushHeaders(): void {
    this.#send('', false);
  }

  write(chunk: Buffer, written?: (error?: Error | null) => void): boolean {
    return this.#send(chunk, false, written);
  }

  end(): void;
  end(text: string, encoding: 'latin1'): void;
  end(chunk: Buffer): void;
  end(chunk: string | Buffer = ''): void {
    const { socket } = this;
    if (this.isEnded || socket === null) return;
    if (this.#head !== '' && this.#hasBody && this.#left === null) {
      this.#left = chunk.length;
      this.#head += `Content-Length: ${chunk.length}\r\n`;
    }
    this.#send(chunk, true);
    if (this.isEnded && !this.destroyed) this.#afterWrite(socket);
  }

  #send(chunk: string | Buffer, isLast: boolean, written?: (error?: Error | null) => void): boolean {
    const { socket } = this;
    if (socket === null || !socket.writable) return false;
    const head = this.#takeHead();
    this.isEnded ||= isLast;
    const length = this.#hasBody ? chunk.length : 0;
    const isChunked = this.#hasBody && this.#left === null;
    if (this.#hasBody && this.#left !== null) {
      this.#left -= length;
      if (this.#left < 0 || (isLast && this.#left > 0)) {
        this.destroy();
        return false;
      }
    }
    const before = isChunked && length > 0 ? `${head}${length.toString(16)}\r\n` : head;
    const after = isChunked ? `${length > 0 ? '\r\n' : ''}${isLast ? '0\r\n\r\n' : ''}` : '';
    if (length === 0 || typeof chunk === 'string') {
      const text = before + (length === 0 ? '' : chunk) + after;
      return text === '' || socket.write(text, 'latin1');
    }
    socket.cork();
    if (before !== '') socket.write(before, 'latin1');
    let hasRoom = socket.write(chunk, written);
    if (after !== '') hasRoom = socket.write(after, 'latin1');
    socket.uncork();
    return hasRoom;
  }

  /** Calls back when the system has taken everything. A callback for each write would cost half a microsecond. */
  #afterWrite(socket: Socket): void {
    if (socket.writableLength === 0 && !socket.destroyed && socket.errored === null) this.#onWritten();
    else socket.write('', 'latin1', this.#onWritten);
  }

  endShared(reply: SharedReply, id: string, date: string): void {
    const { socket } = this;
    if (!this.shouldKeepAlive || this.req.method === 'HEAD') {
      this.writeHead(reply.status, [...reply.headersWith(id), 'Date', date]);
      this.end(reply.bodyWith(id), 'latin1');
      return;
    }
    if (this.headersSent || socket === null || !socket.writable) return;
    this.headersSent = true;
    this.isEnded = true;
    this.statusCode = reply.status;
    reply.writeTo(socket, id, this.#options.keepAlive, date);
    this.#afterWrite(socket);
  }

  destroy(): void {
    this.destroyed = true;
    this.socket?.destroy();
  }

  /** @returns the header section, or '' if it is already written */
  #takeHead(): string {
    if (this.#head === '') return '';
    let head = this.#head;
    this.#head = '';
    head += `Connection: ${this.#connection ?? (this.shouldKeepAlive ? 'keep-alive' : 'close')}\r\n`;
    if (this.shouldKeepAlive) head += `Keep-Alive: ${this.#options.keepAlive}\r\n`;
    if (!this.#hasDate) head += `Date: ${this.#options.date.text()}\r\n`;
    if (this.#hasBody && this.#left === null) head += 'Transfer-Encoding: chunked\r\n';
    return `${head}\r\n`;
  }

  /** Called when all of it is written, or its connection is closed. */
  close(isWritten: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.writableFinished = isWritten;
    this.destroyed ||= !isWritten;
    this.socket = null;
    this.exchange?.close();
    for (const listener of this.#listeners ?? []) listener();
  }
}
