/**
 * Reads the header section of plain requests, and of no others. The grammar is much stricter than HTTP's (RFC 9112), so
 * that every server reads such a request in the same way, above all node:http, which gets all other requests.
 */

import type { Socket } from 'node:net';
import type { ClientRequest } from '#gateway/http/client-exchange.ts';
import { fieldsIn } from '#gateway/http/header-fields.ts';
import { HEADER_BYTES } from '#gateway/http/header-size.ts';
import type { RequestBody } from '#gateway/http/request-body.ts';
import { encodeBeyondAscii } from '#gateway/policy/path-readings.ts';

export interface PlainHead {
  readonly method: string;
  readonly target: string;
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
  /** 0 without a body. */
  readonly contentLength: number;
  /** Whether the client keeps the connection open after the reply. */
  readonly keepsAlive: boolean;
  /** Length of the header section, including the empty line at its end. */
  readonly bytes: number;
}

const END = Buffer.from('\r\n\r\n');
/** The usual methods, and the characters that RFC 3986 allows in a path and a query, plus brackets. */
const REQUEST_LINE =
  /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (\/[A-Za-z0-9\-._~!$&'()*+,;=:@/?%[\]]*) HTTP\/1\.1\r\n/;
const LENGTH = /^\d{1,15}$/;

/** Requests with one of these header fields are left to the parser of node:http. */
const NOT_PLAIN: ReadonlySet<string> = new Set([
  'expect',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * @param bytesMax maximum size of the section. node:http does not count colons and line ends, so it accepts more
 * @returns null if the bytes do not begin with the whole header section of a plain request
 */
export function plainHead(bytes: Buffer, bytesMax = HEADER_BYTES): PlainHead | null {
  const end = bytes.indexOf(END);
  if (end < 0 || end > bytesMax - END.length) return null;
  const text = bytes.toString('latin1', 0, end + 2);
  const [line = '', method = '', target = ''] = REQUEST_LINE.exec(text) ?? [];
  if (line === '') return null;
  const rawHeaders = fieldsIn(text.slice(line.length));
  if (rawHeaders === null) return null;

  let hasHost = false;
  let length: string | null = null;
  let connection: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const value = rawHeaders[i + 1] ?? '';
    const lower = rawHeaders[i]?.toLowerCase() ?? '';
    switch (lower) {
      case 'host':
        if (hasHost) return null;
        hasHost = true;
        break;
      case 'content-length':
        if (length !== null || !LENGTH.test(value)) return null;
        length = value;
        break;
      case 'connection':
        if (connection !== null) return null;
        connection = value.toLowerCase();
        if (connection !== 'keep-alive' && connection !== 'close') return null;
        break;
      default:
        if (NOT_PLAIN.has(lower)) return null;
    }
  }
  if (!hasHost) return null;
  return {
    method,
    target,
    rawHeaders,
    contentLength: Number(length ?? 0),
    keepsAlive: connection !== 'close',
    bytes: end + END.length,
  };
}

/** No part of it repeats another one, so the time grows linearly with the length. */
const TARGET_LINE = /^([A-Z-]+ )([^ \r\n]+)(?= HTTP\/1\.[01]\r?\n)/;
const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * Encodes the target of the request line at the beginning of the bytes. Some clients send bytes beyond ASCII in it: curl
 * with a URL as it was typed, and old scripts. A URI has no such bytes, and node:http refuses them. Their
 * percent-encoding means the same.
 *
 * @returns null if there is nothing to encode
 */
export function withAsciiTarget(bytes: Buffer): Buffer | null {
  const text = bytes.toString('latin1', 0, bytes.indexOf('\n') + 1);
  const [whole, method = '', target = ''] = TARGET_LINE.exec(text) ?? [];
  if (whole === undefined || !BEYOND_ASCII.test(target)) return null;
  const line = Buffer.from(method + encodeBeyondAscii(target), 'latin1');
  return Buffer.concat([line, bytes.subarray(whole.length)]);
}

/** A plain request. */
export class PlainRequest implements ClientRequest {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '1.1';
  readonly rawHeaders: readonly string[];
  readonly socket: Socket;
  readonly body: RequestBody | null;
  readonly #contentLength: number;

  constructor(
    { method, target, rawHeaders, contentLength }: PlainHead,
    socket: Socket,
    body: RequestBody | null,
  ) {
    this.method = method;
    this.url = target;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
    this.body = body;
    this.#contentLength = contentLength;
  }

  get complete(): boolean {
    return this.body === null || this.body.complete;
  }

  get headers(): ClientRequest['headers'] {
    return { 'content-length': String(this.#contentLength) };
  }
}
