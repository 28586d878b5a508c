/** An HTTP/2 client that chooses the content of each frame (RFC 9113 4, 6). */
import type { TLSSocket } from 'node:tls';

const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const DATA = 0;
const END_STREAM = 1;
const END_HEADERS = 4;
const FRAME_HEAD_BYTES = 9;
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const INITIAL_WINDOW_SIZE = 4;
/** Stream of the first request of a client. */
const STREAM = 1;
/** The first byte of a header section whose status HPACK knows (RFC 7541 A); others follow as text. */
const INDEXED_STATUS: Readonly<Record<number, number>> = { 136: 200, 140: 400, 141: 404, 142: 500 };

function frame(type: number, flags: number, stream: number, payload: Buffer | string = ''): Buffer {
  const bytes = Buffer.from(payload);
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(bytes.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Fields as HPACK's literals without indexing, whose names and values are shorter than 127 bytes (RFC 7541 6.2.2). */
function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).map(([name, value]) =>
      Buffer.concat([
        Buffer.from([0, name.length]),
        Buffer.from(name, 'latin1'),
        Buffer.from([value.length]),
        Buffer.from(value, 'latin1'),
      ]),
    ),
  );
}

export interface FramedRequest {
  /** Sends this many DATA frames of `size` bytes each. */
  send(frames: number, size: number): void;
  /** Ends the body. */
  end(): void;
  /** Announces that no further request will come. Resolves when the server has announced the same. */
  leave(): Promise<void>;
  /** Accepts this many more bytes of the reply. */
  take(bytes: number): void;
  /** Resolves with the status once the stream has ended, whichever side ended it; 0 without a reply. */
  readonly status: Promise<number>;
}

/**
 * Begins a POST on a connection that has negotiated `h2`.
 *
 * @param window number of bytes of the reply that are accepted at first
 */
export function beginFramed(socket: TLSSocket, path: string, window = 65_535): FramedRequest {
  const fields = { ':method': 'POST', ':scheme': 'https', ':path': path, ':authority': 'a' };
  socket.write(
    Buffer.concat([
      Buffer.from(PREFACE),
      frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, INITIAL_WINDOW_SIZE]), uint32(window)])),
      frame(HEADERS, END_HEADERS, STREAM, headerBlock(fields)),
    ]),
  );
  const { promise: left, resolve: onLeft } = Promise.withResolvers<void>();
  const status = new Promise<number>((resolve) => {
    let bytes: Buffer = Buffer.alloc(0);
    let seen = 0;
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(seen));
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= FRAME_HEAD_BYTES) {
        const end = FRAME_HEAD_BYTES + bytes.readUIntBE(0, 3);
        if (bytes.length < end) return;
        const [type, flags, stream] = [bytes.readUInt8(3), bytes.readUInt8(4), bytes.readUInt32BE(5)];
        const payload = bytes.subarray(FRAME_HEAD_BYTES, end);
        bytes = bytes.subarray(end);
        if (type === GOAWAY) onLeft();
        if (stream !== STREAM) continue;
        if (type === HEADERS) seen = statusOf(payload);
        const isEnd = (type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0;
        if (isEnd || type === RST_STREAM) resolve(seen);
      }
    });
  });
  return {
    send(frames, size) {
      socket.write(Buffer.concat(Array(frames).fill(frame(DATA, 0, STREAM, Buffer.alloc(size, 'x')))));
    },
    end: () => void socket.write(frame(DATA, END_STREAM, STREAM)),
    leave() {
      socket.write(frame(GOAWAY, 0, 0, Buffer.alloc(8)));
      return left;
    },
    take(bytes) {
      socket.write(frame(WINDOW_UPDATE, 0, STREAM, uint32(bytes)));
    },
    status,
  };
}

/** Reads the digits of a status that HPACK has no number for. It does not decode Huffman codes. */
function statusOf(block: Buffer): number {
  const [first = 0, length = 0] = block;
  const indexed = INDEXED_STATUS[first];
  if (indexed !== undefined) return indexed;
  if ((length & 0x80) !== 0)
    throw new Error(`a status that is not read here: ${block.toString('hex', 0, 8)}`);
  return Number(block.toString('latin1', 2, 2 + length));
}
