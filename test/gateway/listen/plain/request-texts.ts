/** Random texts of requests: most plain, many almost. The same seed gives the same texts. */
import type { Dice } from '#test/support/seed.ts';

const oneOf = <T>(roll: Dice, list: readonly [T, ...T[]]): T => list[roll(list.length)] ?? list[0];

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const ODD_METHODS = [
  'TRACE',
  'CONNECT',
  'get',
  'PRI',
  'QUERY',
  'M-SEARCH',
  'GET ',
  '',
  'PUBLISH',
  'SOURCE',
] as const;
const TARGETS = ['/', '/api/v1/a?b=c&d[]=e', '/a%20b', '/~x/;p=1', '//', '/?', "/!$&'()*+,;=:@"] as const;
const ODD_TARGETS = [
  '*',
  'http://a/b',
  'a:443',
  '/a b',
  '/a#b',
  '/\x80\xff',
  '/"<>\\^`{|}',
  '/\t',
  '/\x7f',
  '?',
  '',
  '/a\0',
] as const;
const VERSIONS = [
  'HTTP/1.0',
  'HTTP/1.1 ',
  'HTTP/2.0',
  'HTTP/0.9',
  'http/1.1',
  'HTTP/1.10',
  'RTSP/1.0',
  'ICE/1.0',
  '',
] as const;
const FIELDS = [
  'Host: a.example',
  'Accept: */*',
  'X-Api-Key: fbk_1',
  'x-empty:',
  'X-Blank:   \t ',
  'Cookie: a=b; c="d"',
  'X-Latin: \xe9\xff',
  'X-Tab: a\tb',
  'Keep-Alive: timeout=5',
  'Connection: keep-alive',
  'Connection: close',
  "!#$%&'*+-.^_`|~0: x",
  'User-Agent: x (y; z)  ',
] as const;
const ODD_FIELDS = [
  'Host: b.example',
  'host:a',
  'Content-Length: 5',
  'Content-Length: 05',
  'Content-Length: +5',
  'Content-Length: -1',
  'Content-Length: 5 5',
  'Content-Length: 5, 5',
  'Content-Length: 0x5',
  'Content-Length:',
  'Content-Length: 5\t',
  'Content-Length: 18446744073709551621',
  'Content-Length : 5',
  'Content_Length: 5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding: xchunked',
  'transfer-encoding : chunked',
  'TE: trailers',
  'Trailer: X',
  'Expect: 100-continue',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Connection: close, keep-alive',
  'Connection: content-length',
  'Connection: CLOSE',
  'Connection:',
  'Proxy-Connection: close',
  'Proxy-Connection: keep-alive',
  ' folded: x',
  '\tfolded',
  'X: a\r\n b',
  'X: a\r\n\tb',
  'X: a\rb',
  'X: a\nY: b',
  'X: a\0b',
  'X: \x01',
  'X: \x7f',
  'X\0: a',
  'X Y: a',
  'X',
  ': a',
  '\xe9: a',
  'X:a:b',
] as const;
const SPECIAL = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '0',
  '5',
  '\x0b',
  '\x7f',
  '\x80',
  '\xff',
  'a',
] as const;

/** @param oddity one of this many parts is odd */
export function requestText(roll: Dice, oddity: number): string {
  const isOdd = (): boolean => roll(oddity) === 0;
  const method = isOdd() ? oneOf(roll, ODD_METHODS) : oneOf(roll, METHODS);
  const target = isOdd() ? oneOf(roll, ODD_TARGETS) : oneOf(roll, TARGETS);
  const version = isOdd() ? oneOf(roll, VERSIONS) : 'HTTP/1.1';
  const fields = isOdd() ? [] : ['Host: a.example'];
  for (let n = roll(5); n > 0; n--) {
    const field = isOdd() ? oneOf(roll, ODD_FIELDS) : oneOf(roll, FIELDS.slice(1) as [string, ...string[]]);
    fields.splice(roll(fields.length + 1), 0, field);
  }
  let body = '';
  if (roll(3) === 0) {
    body = oneOf(roll, [
      '',
      'hello',
      'x'.repeat(roll(40)),
      '5\r\nhello\r\n0\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: b\r\n\r\n',
    ]);
    if (!isOdd()) fields.splice(roll(fields.length + 1), 0, `Content-Length: ${body.length}`);
  }
  const lineEnd = isOdd() ? oneOf(roll, ['\n', '\r', '\r\r\n', '\r\n ']) : '\r\n';
  return `${isOdd() ? '\r\n' : ''}${method} ${target} ${version}${lineEnd}${fields.map((field) => `${field}\r\n`).join('')}\r\n${body}`;
}

/** Changes a few bytes, or none. */
export function mutated(text: string, roll: Dice): string {
  let result = text;
  for (let n = roll(4) - 1; n > 0; n--) {
    const at = roll(result.length + 1);
    const length = roll(4);
    const special = oneOf(roll, SPECIAL);
    switch (roll(5)) {
      case 0:
        result = result.slice(0, at) + String.fromCharCode(roll(256)) + result.slice(at + 1);
        break;
      case 1:
        result = result.slice(0, at) + special + result.slice(at);
        break;
      case 2:
        result = result.slice(0, at) + result.slice(at + length);
        break;
      case 3:
        result = result.slice(0, at) + result.slice(at, at + 4 * length) + result.slice(at);
        break;
      default: {
        const code = result.charCodeAt(at);
        if (code >= 0)
          result = result.slice(0, at) + String.fromCharCode(code ^ (1 << roll(8))) + result.slice(at + 1);
      }
    }
  }
  return result;
}
