/**
 * A client of Envoy's rate limit service that shares no code with the server: HTTP/2, gRPC's frames and protobuf by
 * hand.
 */
import { type ClientHttp2Session, connect } from 'node:http2';
import type { Owner } from './gateway.ts';

export interface RateLimited {
  /** 1: OK, 2: OVER_LIMIT. */
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Header fields that Envoy adds to the request. */
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly body: string;
  /** Status of gRPC; '0': the call was answered. */
  readonly grpcStatus: string;
}

export interface RateLimitClient {
  readonly session: ClientHttp2Session;
  /** @param descriptors entries, as keys and values in turn */
  ask(descriptors: readonly (readonly string[])[], hitsAddend?: number): Promise<RateLimited>;
}

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

export function rateLimitClient(owner: Owner, port: number): RateLimitClient {
  const session = connect(`http://127.0.0.1:${port}`);
  // A call that is cut rejects with its own error.
  session.on('error', () => undefined);
  owner.teardown(() => session.destroy());
  return {
    session,
    async ask(descriptors, hitsAddend = 0) {
      const message = Buffer.concat([
        field(1, Buffer.from('floodgate')),
        ...descriptors.map((entries) => field(2, descriptorOf(entries))),
        ...(hitsAddend === 0 ? [] : [Buffer.from([3 << 3, hitsAddend])]),
      ]);
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(message.length, 1);
      const stream = session.request({
        ':method': 'POST',
        ':path': PATH,
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      stream.end(Buffer.concat([prefix, message]));
      let grpcStatus = '';
      for (const event of ['response', 'trailers'] as const) {
        stream.on(event, (headers: Record<string, unknown>) => {
          grpcStatus = String(headers['grpc-status'] ?? grpcStatus);
        });
      }
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk as Buffer);
      return { ...read(Buffer.concat(chunks).subarray(5)), grpcStatus };
    },
  };
}

function descriptorOf(entries: readonly string[]): Buffer {
  const fields: Buffer[] = [];
  for (let i = 0; i < entries.length; i += 2) {
    const key = field(1, Buffer.from(entries[i] ?? ''));
    fields.push(field(1, Buffer.concat([key, field(2, Buffer.from(entries[i + 1] ?? ''))])));
  }
  return Buffer.concat(fields);
}

function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 127) | 128);
  }
}

function read(message: Buffer): Omit<RateLimited, 'grpcStatus'> {
  let code = 0;
  let body = '';
  const headers: Record<string, string> = {};
  const requestHeaders: Record<string, string> = {};
  for (const [number, value] of fieldsOf(message)) {
    if (number === 1 && typeof value === 'number') code = value;
    if (typeof value === 'number') continue;
    if (number === 5) body = value.toString();
    if (number === 3 || number === 4) {
      const [name, text] = [...fieldsOf(value)].map(([, part]) => part.toString());
      (number === 3 ? headers : requestHeaders)[name ?? ''] = text ?? '';
    }
  }
  return { code, headers, requestHeaders, body };
}

function* fieldsOf(message: Buffer): Iterable<readonly [number, number | Buffer]> {
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++] ?? 0;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = next();
    const value = next();
    if ((tag & 7) === 0) yield [tag >> 3, value];
    else {
      yield [tag >> 3, message.subarray(at, at + value)];
      at += value;
    }
  }
}
