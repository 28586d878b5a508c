/** The cases MAL-…, NORM-…, COOK-… and CAP-… of the public table: malformed input, names of fields, cookies, conditions. */
import { cases, chunked, get, HOST, post, withLength, withLine } from './case.ts';

/** Every byte once, in an order that begins like nothing. */
const GARBAGE = String.fromCharCode(...Array.from({ length: 256 }, (_, i) => (i * 167 + 129) % 256));
const LONG = 'A'.repeat(100_000);
/** RFC 9110 has no rule for cookies; what a cookie means is up to the application. */
const cookie = (value: string): string => get(`Cookie: ${value}`);
/** A request, then one with these conditions. The application's resource has the ETag "v1". */
const then = (...fields: readonly string[]): string[] => [get('Connection: keep-alive'), get(...fields)];

// biome-ignore format: one case a line
export const OTHERS = cases([
  ['MAL-BINARY-GARBAGE', '9112 2.2', 'grammar', 'all 256 bytes', GARBAGE],
  ['MAL-LONG-URL', '9110 15.5.15', 'MAY refuse', 'a target of 100 KB', withLine(`GET /${LONG} HTTP/1.1`)],
  ['MAL-LONG-HEADER-VALUE', '9110 5.4', 'MAY refuse', 'a value of 100 KB', get(`X: ${LONG}`)],
  ['MAL-MANY-HEADERS', '9110 5.4', 'MAY refuse', '10,000 fields', get(...Array.from({ length: 10_000 }, (_, i) => `X-${i}: 1`))],
  ['MAL-NUL-IN-URL', '9112 3', 'grammar', 'a NUL in the target', withLine('GET /\0a HTTP/1.1')],
  ['MAL-CONTROL-CHARS-HEADER', '9110 5.5', 'grammar', 'control characters in a value', get('X: a\x07\x08\x0bb')],
  ['MAL-INCOMPLETE-REQUEST', '9112 8', 'incomplete', 'half of a head', `GET / HTTP/1.1\r\n${HOST}\r\nX: 1`],
  ['MAL-EMPTY-REQUEST', '9112 8', 'incomplete', 'nothing', ''],
  ['MAL-LONG-HEADER-NAME', '9110 5.4', 'MAY refuse', 'a name of 100 KB', get(`${LONG}: 1`)],
  ['MAL-LONG-METHOD', '9112 3', 'MAY refuse', 'a method of 100 KB', withLine(`${LONG} / HTTP/1.1`)],
  ['MAL-NON-ASCII-HEADER-NAME', '9112 5', 'grammar', 'UTF-8 in the name of a field', get('X-\xc3\xab: 1')],
  ['MAL-NON-ASCII-URL', '9112 3', 'SHOULD refuse', 'UTF-8 in the target', withLine('GET /caf\xc3\xa9 HTTP/1.1'), 'the application gets the bytes percent-encoded, as curl and old scripts expect'],
  ['MAL-CL-OVERFLOW', '9110 8.6', 'MUST refuse', 'a Content-Length of 20 digits', withLength('99999999999999999999', '')],
  ['MAL-WHITESPACE-ONLY-LINE', '9112 2.2', 'grammar', 'a line of spaces', '   \r\n\r\n'],
  ['MAL-NUL-IN-HEADER-VALUE', '9110 5.5', 'MUST refuse', 'a NUL in a value', get('X: a\0b')],
  ['MAL-CHUNK-SIZE-OVERFLOW', '9112 7.1', 'MUST refuse', 'a size of 17 digits', chunked('FFFFFFFFFFFFFFFF0\r\nhello\r\n0\r\n\r\n')],
  ['MAL-H2-PREFACE', '9112 2.3', 'MAY refuse', 'the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['MAL-CHUNK-EXTENSION-LONG', '9112 7.1.1', 'MAY refuse', 'an extension of 100 KB', chunked(`5;a=${LONG}\r\nhello\r\n0\r\n\r\n`)],
  ['MAL-CL-EMPTY', '9112 6.3', 'MUST refuse', 'an empty Content-Length', withLength('', '')],
  ['MAL-CL-TAB-BEFORE-VALUE', '9110 5.5', 'MAY refuse', 'a tab before the length', post('hello', 'Content-Length:\t5')],
  ['MAL-URL-BACKSLASH', '9112 3', 'grammar', 'a backslash in the target', withLine('GET /a\\b HTTP/1.1')],
  ['MAL-URL-OVERLONG-UTF8', '9112 3', 'SHOULD refuse', 'an overlong slash in the target', withLine('GET /\xc0\xaf HTTP/1.1'), 'the application gets it percent-encoded, and no server that is still maintained reads a slash'],
  ['MAL-URL-PERCENT-NULL', '9110 4.2', 'MAY refuse', '%00 in the target', withLine('GET /a%00b HTTP/1.1')],
  ['MAL-URL-PERCENT-CRLF', '9110 4.2', 'MAY refuse', '%0d%0a in the target', withLine('GET /a%0d%0aX:%201 HTTP/1.1')],
  ['MAL-RANGE-OVERLAPPING', '9110 14.2', 'application', '1,000 ranges', get(`Range: bytes=${Array(1000).fill('0-').join(',')}`)],
  ['MAL-POST-CL-HUGE-NO-BODY', '9112 8', 'incomplete', 'a length of 1 GB without a body', withLength('999999999', '')],

  ['NORM-UNDERSCORE-CL', '9110 5.1', 'MAY refuse', 'Content_Length beside Content-Length', post('hello world', 'Content-Length: 11', 'Content_Length: 99')],
  ['NORM-SP-BEFORE-COLON-CL', '9112 5.1', 'MUST refuse', 'a space behind Content-Length', post('hello world', 'Content-Length: 11', 'Content-Length : 5')],
  ['NORM-TAB-IN-NAME', '9112 5', 'grammar', 'a tab in the name of a field', post('hello world', 'Content-Length: 11', 'Content\tLength: 99')],
  ['NORM-CASE-TE', '9110 5.1', 'MUST accept', 'TRANSFER-ENCODING', post('B\r\nhello world\r\n0\r\n\r\n', 'TRANSFER-ENCODING: chunked')],
  ['NORM-UNDERSCORE-TE', '9110 5.1', 'MAY refuse', 'Transfer_Encoding alone, and chunks behind it', post('B\r\nhello world\r\n0\r\n\r\n', 'Transfer_Encoding: chunked')],

  ['COOK-ECHO', '9110 5.1', 'application', 'a cookie', cookie('foo=bar')],
  ['COOK-OVERSIZED', '9110 5.4', 'MAY refuse', 'a cookie of 64 KiB', cookie(`big=${'A'.repeat(65_536)}`)],
  ['COOK-EMPTY', '9110 5.1', 'application', 'an empty Cookie', cookie('')],
  ['COOK-NUL', '9110 5.5', 'MUST refuse', 'a NUL in a cookie', cookie('foo=\0bar')],
  ['COOK-CONTROL-CHARS', '9110 5.5', 'grammar', 'control characters in a cookie', cookie('foo=\x01\x02\x03')],
  ['COOK-MANY-PAIRS', '9110 5.1', 'application', '1,000 cookies', cookie(Array.from({ length: 1000 }, (_, i) => `k${i}=v${i}`).join('; '))],
  ['COOK-MALFORMED', '9110 5.1', 'application', 'Cookie: ===;;;', cookie('===;;;')],
  ['COOK-MULTI-HEADER', '9110 5.3', 'application', 'two Cookie fields', get('Cookie: a=1', 'Cookie: b=2')],
  ['COOK-PARSED-BASIC', '9110 5.1', 'application', 'a cookie for a parser', cookie('foo=bar')],
  ['COOK-PARSED-MULTI', '9110 5.1', 'application', 'three cookies', cookie('a=1; b=2; c=3')],
  ['COOK-PARSED-EMPTY-VAL', '9110 5.1', 'application', 'a cookie without a value', cookie('foo=')],
  ['COOK-PARSED-SPECIAL', '9110 5.1', 'application', 'spaces and = in cookies', cookie('a=hello world; b=x=y')],

  ['CAP-ETAG-304', '9110 13.1.2', 'application', 'If-None-Match', then('If-None-Match: "v1"')],
  ['CAP-LAST-MODIFIED-304', '9110 13.1.3', 'application', 'If-Modified-Since', then('If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT')],
  ['CAP-ETAG-IN-304', '9110 15.4.5', 'application', 'the 304 has the ETag', then('If-None-Match: "v1"')],
  ['CAP-INM-PRECEDENCE', '9110 13.1.2', 'application', 'both conditions', then('If-None-Match: "v1"', 'If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT')],
  ['CAP-INM-WILDCARD', '9110 13.1.2', 'application', 'If-None-Match: *', then('If-None-Match: *')],
  ['CAP-IMS-FUTURE', '9110 13.1.3', 'application', 'If-Modified-Since in the future', then('If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT')],
  ['CAP-IMS-INVALID', '9110 13.1.3', 'application', 'If-Modified-Since that is no date', then('If-Modified-Since: not-a-date')],
  ['CAP-INM-UNQUOTED', '9110 8.8.3', 'application', 'If-None-Match without quotes', then('If-None-Match: v1')],
  ['CAP-ETAG-WEAK', '9110 13.1.2', 'application', 'If-None-Match with W/', then('If-None-Match: W/"v1"')],
]);
