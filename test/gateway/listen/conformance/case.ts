/** The form of the cases of HTTP/1.1 conformance, and the parts that their requests are made of. */

/** RFC 9110 and RFC 9112 ask this of a server that receives the bytes. The page has the meaning of each. */
export type Demand =
  | 'MUST refuse'
  | 'grammar'
  | 'SHOULD refuse'
  | 'MAY refuse'
  | 'MUST close'
  | 'MUST accept'
  | 'SHOULD accept'
  | 'no switch'
  | 'incomplete'
  | 'application';

export interface Case {
  /** The id in the public table of Http11Probe. */
  readonly id: string;
  /** Number and section of the RFC, such as `9112 2.2`. */
  readonly rfc: string;
  readonly demand: Demand;
  /** The property of the request that the case tests. */
  readonly about: string;
  /** The bytes in latin1. Each further part is sent after the reply to the part before. */
  readonly sent: readonly string[];
  /** Why the gateway does not do what the RFC recommends; '' if it does. */
  readonly why: string;
}

type Row = readonly [
  id: string,
  rfc: string,
  demand: Demand,
  about: string,
  sent: string | readonly string[],
  why?: string,
];

export const cases = (rows: readonly Row[]): Case[] =>
  rows.map(([id, rfc, demand, about, sent, why = '']) => ({
    id,
    rfc,
    demand,
    about,
    sent: typeof sent === 'string' ? [sent] : sent,
    why,
  }));

export const HOST = 'Host: a.example:8080';

/** @param lines the request line and the fields */
export const request = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;

/** A request with this request line, and with a valid Host. */
export const withLine = (line: string, ...fields: readonly string[]): string =>
  request(line, HOST, ...fields);

export const get = (...fields: readonly string[]): string => withLine('GET / HTTP/1.1', ...fields);

export const post = (body: string, ...fields: readonly string[]): string =>
  withLine('POST / HTTP/1.1', ...fields) + body;

/** A request whose body is already chunked. */
export const chunked = (body: string): string => post(body, 'Transfer-Encoding: chunked');

/** `hello` with this Content-Length. */
export const withLength = (value: string, body = 'hello'): string => post(body, `Content-Length: ${value}`);

/** `hello`, which is no chunked body, with this Transfer-Encoding and a Content-Length. */
export const withCoding = (value: string): string =>
  post('hello', `Transfer-Encoding: ${value}`, 'Content-Length: 5');

/** A POST whose chunked body is empty, and whose Content-Length covers a second request. */
export function covering(
  inner: string,
  fields: (length: number) => readonly string[],
  prefix = '0\r\n\r\n',
): string {
  const body = prefix + inner;
  return post(body, ...fields(body.length));
}
