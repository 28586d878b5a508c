/**
 * A reply that many requests share: only the id of the refusal, the fields of the connection and Date differ. So it is
 * checked and joined once. For a kept connection it is a buffer, into which only the id is written each time.
 */
import type { Socket } from 'node:net';
import { STATUS_CODES } from './node-http.ts';

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** A whole reply with the fields of the connection. */
interface Bytes {
  readonly whole: Buffer;
  /** Positions of the id. */
  readonly places: readonly number[];
  readonly keepAlive: string;
  readonly date: string;
}

export class SharedReply {
  readonly status: number;
  /** The fields and the body have it in the places of the id, which has the same length. */
  readonly #gap: string;
  readonly #headers: readonly string[];
  /** The status line, and the fields with line breaks. */
  readonly #head: string;
  /** The parts of the body between the places of the id. */
  readonly #pieces: readonly string[];
  /** null before the first use, and as long as a socket may still read it. */
  #spare: Bytes | null = null;

  /**
   * @param headers alternating names and values, with Content-Length, without Connection and Date
   * @param body each code unit stands for one byte
   * @throws Error if a field cannot be written
   */
  constructor(status: number, headers: readonly string[], body: string, gap: string) {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
    let contentLength = '';
    for (let i = 0; i < headers.length; i += 2) {
      const [name = '', value = ''] = [headers[i], headers[i + 1]];
      if (!NAME.test(name) || !VALUE.test(value)) throw new Error(`the field ${name} cannot be written`);
      if (name === 'Content-Length') contentLength = value;
      head += `${name}: ${value}\r\n`;
    }
    if (contentLength !== String(body.length))
      throw new Error('Content-Length is not the length of the body');
    this.status = status;
    this.#gap = gap;
    this.#headers = headers;
    this.#head = head;
    this.#pieces = body.split(gap);
  }

  /** Returns the fields with the id, for a response that joins them itself. */
  headersWith(id: string): string[] {
    return this.#headers.map((item) => (item === this.#gap ? id : item));
  }

  /** This is faster than join(), which would copy the body once more. */
  bodyWith(id: string): string {
    let [body = ''] = this.#pieces;
    for (let i = 1; i < this.#pieces.length; i++) body += id + this.#pieces[i];
    return body;
  }

  /**
   * Writes the whole reply to a connection that is kept.
   *
   * @param keepAlive value of Keep-Alive @param date value of Date
   * @returns whether the system has taken all of it. If not, the socket keeps the buffer, and the next reply gets a new one
   */
  writeTo(socket: Socket, id: string, keepAlive: string, date: string): boolean {
    if (id.length !== this.#gap.length) throw new Error('the id is not as long as its gap');
    let bytes = this.#spare;
    this.#spare = null;
    if (bytes === null || date !== bytes.date || keepAlive !== bytes.keepAlive)
      bytes = this.#newBytes(keepAlive, date);
    const { whole } = bytes;
    for (const place of bytes.places) whole.write(id, place, 'latin1');
    socket.write(whole);
    if (!hasTaken(socket)) return false;
    this.#spare = bytes;
    return true;
  }

  #newBytes(keepAlive: string, date: string): Bytes {
    const gap = this.#gap;
    const connection = `Connection: keep-alive\r\nKeep-Alive: ${keepAlive}\r\nDate: ${date}\r\n`;
    const text = `${this.#head}${connection}\r\n${this.bodyWith(gap)}`;
    const places: number[] = [];
    for (let at = text.indexOf(gap); at >= 0; at = text.indexOf(gap, at + gap.length)) places.push(at);
    return { whole: Buffer.from(text, 'latin1'), places, keepAlive, date };
  }
}

/** Whether the system has taken all that was written to a socket. */
export function hasTaken(socket: Socket): boolean {
  return socket.writableLength === 0 && !socket.destroyed && socket.errored === null;
}
