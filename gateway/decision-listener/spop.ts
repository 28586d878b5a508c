/**
 * Reads and writes frames of SPOP, the protocol in which HAProxy asks agents (section 3 of its doc/SPOE.txt). Frames
 * are read from a Buffer, and written as strings whose code units stand for one byte each. Fragmented frames are
 * refused.
 */

/** A frame that cannot be read. The connection ends after it. */
export class FrameError extends Error {
  /** Status code of the DISCONNECT frame, from the list in section 3.5. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type Values = ReadonlyMap<string, string | number | boolean | null>;

export type Frame =
  | { readonly kind: 'hello'; readonly frameBytesMax: number; readonly isHealthCheck: boolean }
  /**
   * `ids` has the ids of stream and frame, which the ACK repeats. `args` is null unless there is exactly one message.
   */
  | { readonly kind: 'notify'; readonly ids: string; readonly args: Values | null }
  | { readonly kind: 'disconnect' | 'unknown' };

class Reader {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  /** Skips bytes. @returns the position of the first skipped byte */
  skip(length: number): number {
    this.at += length;
    if (this.at > this.#bytes.length) throw new FrameError(4, 'the frame ends too early');
    return this.at - length;
  }

  byte(): number {
    return this.#bytes.readUInt8(this.skip(1));
  }

  number(): number {
    let value = this.byte();
    if (value < 240) return value;
    for (let scale = 16; scale < 2 ** 67; scale *= 128) {
      const byte = this.byte();
      value += byte * scale;
      if (byte < 128) return value;
    }
    throw new FrameError(4, 'a number has more than 64 bits');
  }

  text(): string {
    return this.#bytes.toString('latin1', this.skip(this.number()), this.at);
  }

  value(): string | number | boolean | null {
    const typeAndFlag = this.byte();
    const type = typeAndFlag & 15;
    if (type === 0) return null;
    if (type === 1) return typeAndFlag > 15;
    if (type < 6) return this.number();
    if (type === 6) return this.#bytes.subarray(this.skip(4), this.at).join('.');
    if (type === 7) return this.#bytes.toString('hex', this.skip(16), this.at).replace(/.{4}(?=.)/g, '$&:');
    if (type < 10) return this.text();
    throw new FrameError(4, 'a value has an unknown type');
  }
}

/** @param bytes the frame without the four bytes of its length @throws FrameError */
export function readFrame(bytes: Buffer): Frame {
  const reader = new Reader(bytes);
  const type = reader.byte();
  const isWhole = (bytes.readUInt8(reader.skip(4) + 3) & 1) === 1;
  if (type === 0 || !isWhole) throw new FrameError(10, 'frames must not be fragmented');
  reader.number();
  reader.number();
  const ids = bytes.toString('latin1', 5, reader.at);
  const values = new Map<string, string | number | boolean | null>();
  if (type === 1) {
    while (!reader.isAtEnd) values.set(reader.text(), reader.value());
    return helloOf(values);
  }
  if (type !== 3) return { kind: type === 2 ? 'disconnect' : 'unknown' };
  reader.text();
  for (let left = reader.byte(); left > 0; left--) values.set(reader.text(), reader.value());
  return { kind: 'notify', ids, args: reader.isAtEnd ? values : null };
}

function helloOf(values: Values): Frame {
  const frameBytesMax = Number(values.get('max-frame-size'));
  if (!/(?:^|,) *2\./.test(String(values.get('supported-versions'))))
    throw new FrameError(8, 'only version 2.0 is supported');
  // Every peer must accept frames of 256 bytes.
  if (!(frameBytesMax >= 256)) throw new FrameError(9, 'max-frame-size is not at least 256');
  return { kind: 'hello', frameBytesMax, isHealthCheck: values.get('healthcheck') === true };
}

/** Reads the value of HAProxy's `req.hdrs_bin`. @returns alternating names and values @throws FrameError */
export function headersIn(value: string): string[] {
  const reader = new Reader(Buffer.from(value, 'latin1'));
  const headers: string[] = [];
  for (;;) {
    const [name, text] = [reader.text(), reader.text()];
    if (name === '' && reader.isAtEnd) return headers;
    headers.push(name, text);
  }
}

export function writeHello(frameBytesMax: number): string {
  const size = pairOf('max-frame-size', frameBytesMax);
  return frameOf(101, '\0\0', pairOf('version', '2.0') + size + pairOf('capabilities', 'pipelining'));
}

export function writeDisconnect(status: number, message: string): string {
  return frameOf(102, '\0\0', pairOf('status-code', status) + pairOf('message', message));
}

/** @param actions joined results of `setVariable` */
export function writeAck(ids: string, actions: string): string {
  return frameOf(103, ids, actions);
}

/** Writes an action that sets a variable of HAProxy's transaction. */
export function setVariable(name: string, value: string | number): string {
  return `\x01\x03\x02${pairOf(name, value)}`;
}

function frameOf(type: number, ids: string, payload: string): string {
  const body = `${String.fromCharCode(type)}\0\0\0\x01${ids}${payload}`;
  const { length } = body;
  return String.fromCharCode(0, (length >> 16) & 255, (length >> 8) & 255, length & 255) + body;
}

function pairOf(name: string, value: string | number): string {
  return textOf(name) + (typeof value === 'number' ? `\x03${numberOf(value)}` : `\x08${textOf(value)}`);
}

function textOf(value: string): string {
  return numberOf(value.length) + value;
}

function numberOf(value: number): string {
  if (value < 240) return String.fromCharCode(value);
  let text = String.fromCharCode((value & 15) | 240);
  let rest = (value - 240) >>> 4;
  for (; rest >= 128; rest = (rest - 128) >>> 7) text += String.fromCharCode((rest & 127) | 128);
  return text + String.fromCharCode(rest);
}
