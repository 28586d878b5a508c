/**
 * A reply that many requests share: only the id of the refusal, the fields of the connection and Date differ. So it is
 * checked and joined once. For a kept connection it is a buffer, into which only the id is written each time. As a text it
 * makes a denied request a tenth dearer.
 */
import type { Socket } from 'node:net';
import { headText } from './head-text.ts';
import { STATUS_CODES } from './node-http.ts';

const HEAD = /^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\x80-\xff]*\r\n)*$/;

export class SharedReply {
  readonly status: number;
  /** The fields and the body have it in the places of the id, which has the same length. */
  readonly #gap: string;
  readonly #headers: readonly string[];
  /** The status line and the fields. */
  readonly #head: string;
  readonly #body: string;
  /** The whole reply for a kept connection, with an id in its places. They belong to this Keep-Alive and this Date. */
  #bytes = Buffer.alloc(0);
  #places: number[] = [];
  #keepAlive = '';
  #date = '';

  /**
   * @param headers alternating names and values, with Content-Length, without Connection and Date
   * @param body each code unit stands for one byte
   * @throws Error if a field cannot be written
   */
  constructor(status: number, headers: readonly string[], body: string, gap: string) {
    const statusLine = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`;
    const head = headText(statusLine, headers);
    const isWhole = head.split('\n').length === headers.length / 2 + 2;
    if (!isWhole || !HEAD.test(head.slice(statusLine.length + 2)))
      throw new Error('a field of the reply cannot be written');
    if (headers[headers.indexOf('Content-Length') + 1] !== String(body.length))
      throw new Error('Content-Length is not the length of the body');
    this.status = status;
    this.#gap = gap;
    this.#headers = headers;
    this.#head = head;
    this.#body = body;
  }

  /** Returns the fields with the id, for a response that joins them itself. */
  headersWith(id: string): string[] {
    return this.#headers.map((item) => (item === this.#gap ? id : item));
  }

  bodyWith(id: string): string {
    return this.#body.replaceAll(this.#gap, id);
  }

  /** Writes the whole reply to a connection that is kept. @param keepAlive value of Keep-Alive @param date value of Date */
  writeTo(socket: Socket, id: string, keepAlive: string, date: string): void {
    if (id.length !== this.#gap.length) throw new Error('the id is not as long as its gap');
    if (date !== this.#date || keepAlive !== this.#keepAlive) this.#renew(keepAlive, date);
    for (const place of this.#places) this.#bytes.write(id, place, 'latin1');
    socket.write(this.#bytes);
    // If the system has not taken all of it, the socket still needs these bytes with this id.
    if (socket.writableLength > 0) this.#bytes = Buffer.from(this.#bytes);
  }

  #renew(keepAlive: string, date: string): void {
    const gap = this.#gap;
    const connection = `Connection: keep-alive\r\nKeep-Alive: ${keepAlive}\r\nDate: ${date}\r\n`;
    const text = `${this.#head}${connection}\r\n${this.#body}`;
    this.#bytes = Buffer.from(text, 'latin1');
    this.#places = [];
    for (let at = text.indexOf(gap); at >= 0; at = text.indexOf(gap, at + 1)) this.#places.push(at);
    this.#keepAlive = keepAlive;
    this.#date = date;
  }
}
