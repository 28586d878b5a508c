/** A reply that a client could read in two ways closes its connection. */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import t from 'tap';
import { CheckedFields } from '#gateway/http/checked-fields.ts';
import { DateField } from '#gateway/http/date-field.ts';
import { PlainRequest } from '#gateway/listen/plain/plain-request.ts';
import { PlainResponse } from '#gateway/listen/plain/plain-response.ts';

const DATE = 'Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n';
const KEPT = `Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n${DATE}`;

/** Returns the bytes that the response sends for `write`. */
function sent(
  write: (res: PlainResponse) => void,
  method = 'GET',
): { readonly text: string; readonly isDestroyed: boolean } {
  let text = '';
  const stream = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, written) {
      text += chunk.toString('latin1');
      written();
    },
  });
  const socket = stream as unknown as Socket;
  const head = { method, target: '/', rawHeaders: [], contentLength: 0, keepsAlive: true, bytes: 0 };
  const options = { date: new DateField(() => 0), keepAlive: 'timeout=5' };
  const res = new PlainResponse(new PlainRequest(head, socket, null), true, options, () => undefined);
  write(res);
  return { text, isDestroyed: stream.destroyed };
}

const LENGTH_2 = ['Content-Length', '2'];
const SHARED = new CheckedFields(['A', 'b', ...LENGTH_2]);

t.test('sends well-formed replies', async (t) => {
  const cases: Record<string, readonly [(res: PlainResponse) => void, string, string?]> = {
    'a whole one': [
      (res) => {
        res.writeHead(200, 'Fine', LENGTH_2);
        res.end('ok', 'latin1');
      },
      `HTTP/1.1 200 Fine\r\nContent-Length: 2\r\n${KEPT}\r\nok`,
    ],
    'without a length, but whole': [
      (res) => {
        res.writeHead(429, ['A', 'b']);
        res.end('ok', 'latin1');
      },
      `HTTP/1.1 429 Too Many Requests\r\nA: b\r\nContent-Length: 2\r\n${KEPT}\r\nok`,
    ],
    'in pieces, with a length': [
      (res) => {
        res.writeHead(200, LENGTH_2);
        res.write('o', 'latin1');
        res.write(Buffer.from('k'));
        res.end();
      },
      `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${KEPT}\r\nok`,
    ],
    'in chunks': [
      (res) => {
        res.writeHead(200, []);
        res.flushHeaders();
        res.write(Buffer.from('hello world'));
        res.write('!', 'latin1');
        res.write(Buffer.alloc(0));
        res.end(Buffer.from('?'));
      },
      `HTTP/1.1 200 OK\r\n${KEPT}Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n1\r\n!\r\n1\r\n?\r\n0\r\n\r\n`,
    ],
    '204 with a body': [
      (res) => {
        res.writeHead(204, []);
        res.end('no', 'latin1');
      },
      `HTTP/1.1 204 No Content\r\n${KEPT}\r\n`,
    ],
    'HEAD, in pieces': [
      (res) => {
        res.writeHead(200, ['Content-Length', '500']);
        res.write(Buffer.from('x'));
        res.end();
      },
      `HTTP/1.1 200 OK\r\nContent-Length: 500\r\n${KEPT}\r\n`,
      'HEAD',
    ],
    'one that closes, with a Date': [
      (res) => {
        res.writeHead(200, ['Connection', 'close', 'date', 'today', ...LENGTH_2]);
        res.end('ok', 'latin1');
      },
      'HTTP/1.1 200 OK\r\ndate: today\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok',
    ],
    'with shared fields': [
      (res) => {
        res.writeFields(429, SHARED, ['C', 'd']);
        res.end('ok', 'latin1');
      },
      `HTTP/1.1 429 Too Many Requests\r\nC: d\r\n${KEPT}A: b\r\nContent-Length: 2\r\n\r\nok`,
    ],
    'HEAD, with shared fields': [
      (res) => {
        res.writeFields(429, SHARED, []);
        res.end('ok', 'latin1');
      },
      `HTTP/1.1 429 Too Many Requests\r\n${KEPT}A: b\r\nContent-Length: 2\r\n\r\n`,
      'HEAD',
    ],
  };
  for (const [name, [write, text, method]] of Object.entries(cases))
    t.same(sent(write, method), { text, isDestroyed: false }, name);
});

t.test('refuses malformed replies', async (t) => {
  const whole = (headers: string[], body = 'ok'): { text: string; isDestroyed: boolean } =>
    sent((res) => {
      res.writeHead(200, headers);
      res.end(body, 'latin1');
    });
  const nothing = { text: '', isDestroyed: true };
  t.same(whole(['A', 'b\r\nC: d']), nothing, 'a value with a line break');
  t.same(whole(['A\r\nC', 'd']), nothing, 'a name with a line break');
  t.same(whole(['A b', 'd']), nothing, 'a name with a space');
  t.same(whole(['A', '\0']), nothing, 'a value with NUL');
  t.same(whole(['Transfer-Encoding', 'gzip']), nothing, 'a transfer coding');
  t.same(whole([...LENGTH_2, ...LENGTH_2]), nothing, 'two lengths');
  t.same(whole(['Content-Length', '+2']), nothing, 'a length with a sign');
  t.match(whole(['Content-Length', '3']), { isDestroyed: true }, 'a body shorter than its length');
  t.match(whole(['Content-Length', '1']), { isDestroyed: true }, 'a body longer than its length');
  const reason = (res: PlainResponse): void => {
    res.writeHead(200, 'OK\r\nA: b', []);
    res.end();
  };
  t.same(sent(reason), nothing, 'a reason with a line break');
  const pieces = sent((res) => {
    res.writeHead(200, LENGTH_2);
    res.write(Buffer.from('o'));
    res.write(Buffer.from('kay'));
  });
  t.equal(pieces.isDestroyed, true, 'a piece beyond the length');
  const shared = (more: string[], body: string): { text: string; isDestroyed: boolean } =>
    sent((res) => {
      res.writeFields(200, SHARED, more);
      res.end(body, 'latin1');
    });
  t.same(shared(['C', 'd\r\nE: f'], 'ok'), nothing, 'an own field with a line break');
  t.match(shared([], 'okay'), { isDestroyed: true }, 'a body longer than the shared length');
  const twice = (res: PlainResponse): void => {
    res.writeHead(200, []);
    res.writeHead(200, []);
  };
  t.throws(() => sent(twice), 'a second head');
});

t.test('fields are shared only if each can be written, and one is their length', async (t) => {
  for (const headers of [
    ['A', 'b\r\nC: d'],
    ['A b', 'c'],
    ['', 'c'],
    ['A', '\0'],
    ['A', '\u{1f642}'],
  ])
    t.throws(() => new CheckedFields([...LENGTH_2, ...headers]), /cannot be written/);
  t.throws(() => new CheckedFields(['A', 'b']), /Content-Length/);
});
