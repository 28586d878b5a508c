/** Replies of applications that violate the grammar of HTTP/1.1, or nearly, and what has to become of them. */

/**
 * - read: the client gets the whole reply, in a form that obeys the grammar.
 * - refuse: the client gets 502 at once.
 * - break: the client must not take the reply for complete.
 */
type Demand = 'read' | 'refuse' | 'break';

/**
 * What NGINX of Debian 12 makes of it. `waits`: it decides only when the application closes. `as HTTP/0.9`: it passes on
 * the bytes, with the head, as a body.
 */
export type OfNginx = 'reads' | 'refuses' | 'waits' | 'as HTTP/0.9';

export interface ReplyCase {
  /** The special part of the reply, in words. */
  readonly about: string;
  /** Number and section of the RFC, such as `9112 2.2`. */
  readonly rfc: string;
  readonly demand: Demand;
  readonly nginx: OfNginx;
  /** The bytes in latin1. */
  readonly sent: string;
  /** Whether the application closes the connection behind them. */
  readonly closes: boolean;
}

type Row = readonly [
  about: string,
  rfc: string,
  demand: Demand,
  nginx: OfNginx,
  sent: string,
  then?: 'closes',
];

const OK = 'HTTP/1.1 200 OK\r\n';
const LENGTH = 'Content-Length: 2\r\n';
const CODING = 'Transfer-Encoding: chunked\r\n';
/** A reply with these lines before the length of its body. */
const withLines = (...lines: readonly string[]): string => `${OK}${lines.join('')}${LENGTH}\r\nok`;
const withLength = (...values: readonly string[]): string =>
  `${OK}${values.map((value) => `Content-Length: ${value}\r\n`).join('')}\r\nok`;
const withStatus = (line: string): string => `${line}\r\n${LENGTH}\r\nok`;
const chunked = (body: string): string => `${OK}${CODING}\r\n${body}`;
const ONE_CHUNK = '2\r\nok\r\n0\r\n\r\n';

// biome-ignore format: one case a line
const ROWS: Readonly<Record<string, readonly Row[]>> = {
  'Lines': [
    ['CR LF', '9112 2.2', 'read', 'reads', withLines()],
    ['LF alone', '9112 2.2', 'read', 'reads', withLines().replaceAll('\r', '')],
    ['LF alone behind some lines', '9112 2.2', 'read', 'reads', `HTTP/1.1 200 OK\nX: 1\r\n${LENGTH}\nok`],
    ['LF alone, and CR LF twice in the body', '9112 2.2', 'read', 'reads', 'HTTP/1.1 200 OK\nContent-Length: 6\n\nok\r\n\r\n'],
    ['CR alone in a value', '9112 2.2', 'refuse', 'refuses', withLines('X: a\rContent-Length: 3\r\n')],
    ['CR CR LF behind each line', '9112 2.2', 'refuse', 'waits', withLines().replaceAll('\r\n', '\r\r\n')],
    ['an empty line before the status line', '9112 2.2', 'refuse', 'as HTTP/0.9', `\r\n${withLines()}`],
  ],
  'Status line': [
    ['no reason, and no space before it', '9112 4', 'read', 'reads', withStatus('HTTP/1.1 200')],
    ['an empty reason', '9112 4', 'read', 'reads', withStatus('HTTP/1.1 200 ')],
    ['a control character in the reason', '9112 4', 'read', 'reads', withStatus('HTTP/1.1 200 O\x01K')],
    ['two spaces', '9112 4', 'read', 'reads', withStatus('HTTP/1.1  200 OK')],
    ['403.1, as from IIS', '9112 4', 'read', 'reads', withStatus('HTTP/1.1 403.1 Forbidden')],
    ['the line twice', '9112 4', 'read', 'reads', withLines(OK)],
    ['two different lines', '9112 4', 'refuse', 'reads', withLines('HTTP/1.1 404 Not Found\r\n')],
    ['HTTP/1.0', '9112 9.3', 'read', 'reads', withStatus('HTTP/1.0 200 OK')],
    ['HTTP/1.2', '9110 2.5', 'read', 'reads', withStatus('HTTP/1.2 200 OK')],
    ['HTTP/2.0, which scripts take from a proxy in front', '9110 2.5', 'read', 'reads', withStatus('HTTP/2.0 200 OK')],
    ['http/1.1', '9112 2.3', 'refuse', 'as HTTP/0.9', withStatus('http/1.1 200 OK')],
    ['ICY, as from radio stations', '9112 2.3', 'refuse', 'as HTTP/0.9', withStatus('ICY 200 OK')],
    ['no head', '9112 2.3', 'refuse', 'as HTTP/0.9', 'hello'],
  ],
  'Fields': [
    ['a space before the colon', '9112 5.1', 'read', 'refuses', withLines('X : 1\r\n')],
    ['a space before the colon of the length', '9112 5.1', 'read', 'refuses', withLines().replace(':', ' :')],
    ['a folded value', '9112 5.2', 'read', 'refuses', withLines('X: a,\r\n\tb\r\n')],
    ['a folded line before the first field', '9112 5.2', 'refuse', 'refuses', withLines(' X: a\r\n')],
    ['a name that is no token', '9110 5.1', 'read', 'reads', withLines('X[1]: a\r\n')],
    ['a space in a name', '9110 5.1', 'refuse', 'refuses', withLines('X 1: a\r\n')],
    ['no name', '9110 5.1', 'refuse', 'refuses', withLines(': a\r\n')],
    ['no colon', '9112 5', 'refuse', 'reads', withLines('X\r\n')],
    ['a control character in a value', '9110 5.5', 'read', 'reads', withLines('X: a\x07b\r\n')],
    ['NUL in a value', '9110 5.5', 'refuse', 'refuses', withLines('X: a\0b\r\n')],
    ['bytes that are not ASCII', '9110 5.5', 'read', 'reads', withLines('X: \xc3\xa9\r\n')],
  ],
  'Length': [
    ['two that are equal', '9110 8.6', 'read', 'reads', withLength('2', '2')],
    ['a list of equal lengths', '9110 8.6', 'read', 'waits', withLength('2, 2')],
    ['two that differ', '9112 6.3', 'refuse', 'waits', withLength('2', '3')],
    ['zeros before it', '9110 8.6', 'read', 'reads', withLength('002')],
    ['a sign', '9110 8.6', 'refuse', 'waits', withLength('+2')],
    ['nothing behind its colon', '9110 8.6', 'refuse', 'waits', withLength('')],
    ['20 digits', '9110 8.6', 'refuse', 'waits', withLength('99999999999999999999')],
    ['a control character behind it', '9110 5.5', 'refuse', 'waits', withLength('2\x0b')],
    ['a length and chunks', '9112 6.3', 'refuse', 'reads', `${OK}${CODING}${LENGTH}\r\n${ONE_CHUNK}`],
    ['chunked twice', '9112 6.1', 'refuse', 'reads', `${OK}${CODING}${CODING}\r\n${ONE_CHUNK}`],
    ['gzip and chunks, which nobody asked for', '9112 7', 'refuse', 'reads', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n${ONE_CHUNK}`],
    ['identity, which means none in RFC 2616', '9112 7', 'read', 'reads', withLines('Transfer-Encoding: identity\r\n')],
    ['chunks in HTTP/1.0', '9112 6.1', 'read', 'reads', `HTTP/1.0 200 OK\r\n${CODING}\r\n${ONE_CHUNK}`],
    ['none: the body ends with the connection', '9112 6.3', 'read', 'reads', `${OK}\r\nok`, 'closes'],
    ['more bytes than it says', '9112 6.3', 'read', 'reads', `${withLines()}HTTP/1.1 200 OK\r\n\r\n`],
    ['fewer bytes than it says', '9112 8', 'break', 'refuses', withLength('3'), 'closes'],
  ],
  'Chunks': [
    ['a size with zeros before it', '9112 7.1', 'read', 'reads', chunked('0000000000000000000002\r\nok\r\n000000000000000\r\n\r\n')],
    ['blanks behind a size', '9112 7.1', 'read', 'reads', chunked('2  \r\nok\r\n0\t\r\n\r\n')],
    ['a blank before a size', '9112 7.1', 'refuse', 'refuses', chunked(` ${ONE_CHUNK}`)],
    ['extensions', '9112 7.1.1', 'read', 'reads', chunked('2;a=b;c="d;e"\r\nok\r\n0;f\r\n\r\n')],
    ['a trailer field, which is removed', '9112 7.1.2', 'read', 'reads', chunked('2\r\nok\r\n0\r\nX: 1\r\n\r\n')],
    ['LF alone', '9112 2.2', 'read', 'reads', chunked(ONE_CHUNK.replaceAll('\r', ''))],
    ['LF alone behind an extension', '9112 2.2', 'read', 'reads', chunked('2;a\nok\r\n0\r\n\r\n')],
    ['CR alone', '9112 2.2', 'refuse', 'refuses', chunked('2\rok\r\n0\r\n\r\n')],
    ['0x before a size', '9112 7.1', 'refuse', 'refuses', chunked(`0x${ONE_CHUNK}`)],
    ['no size', '9112 7.1', 'refuse', 'refuses', chunked('\r\nok\r\n0\r\n\r\n')],
    ['a size of 16 digits', '9112 7.1', 'refuse', 'refuses', chunked('ffffffffffffffff\r\nok')],
    ['more data than the size says', '9112 7.1', 'refuse', 'refuses', chunked('2\r\nok, more\r\n0\r\n\r\n')],
    ['no line end behind the data', '9112 7.1', 'refuse', 'refuses', chunked('2\r\nok0\r\n\r\n')],
    ['the chunk of size 0 is the last line', '9112 8', 'read', 'refuses', chunked('2\r\nok\r\n0\r\n'), 'closes'],
    ['no chunk of size 0', '9112 8', 'break', 'refuses', chunked('2\r\nok\r\n'), 'closes'],
  ],
};

export const REPLY_GROUPS: ReadonlyMap<string, readonly ReplyCase[]> = new Map(
  Object.entries(ROWS).map(([title, rows]) => [
    title,
    rows.map(([about, rfc, demand, nginx, sent, then]) => {
      return { about, rfc, demand, nginx, sent, closes: then === 'closes' };
    }),
  ]),
);

export const REPLY_CASES: readonly ReplyCase[] = [...REPLY_GROUPS.values()].flat();
