/** A reply that a client could read in two ways closes its connection. */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import t from 'tap';
import { DateField } from '#gateway/http/date-field.ts';
import { SharedReply } from '#gateway/http/shared-reply.ts';
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
const GAP = '~~';
const SHARED = new SharedReply(429, ['A', GAP, 'Content-Length', '6'], `[${GAP},]`.padEnd(6), GAP);

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
        res.write(Buffer.from('o'));
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
        res.write(Buffer.from('!'));
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
    'a shared one': [
      (res) => res.endShared(SHARED, 'id', 'today'),
      'HTTP/1.1 429 Too Many Requests\r\nA: id\r\nContent-Length: 6\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nDate: today\r\n\r\n[id,] ',
    ],
    'a shared one with another id': [
      (res) => res.endShared(SHARED, 'it', 'today'),
      'HTTP/1.1 429 Too Many Requests\r\nA: it\r\nContent-Length: 6\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nDate: today\r\n\r\n[it,] ',
    ],
    'a shared one on another day': [
      (res) => res.endShared(SHARED, 'id', 'tomorrow'),
      'HTTP/1.1 429 Too Many Requests\r\nA: id\r\nContent-Length: 6\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nDate: tomorrow\r\n\r\n[id,] ',
    ],
    'a shared one that closes': [
      (res) => {
        res.shouldKeepAlive = false;
        res.endShared(SHARED, 'id', 'today');
      },
      'HTTP/1.1 429 Too Many Requests\r\nA: id\r\nContent-Length: 6\r\nDate: today\r\nConnection: close\r\n\r\n[id,] ',
    ],
    'HEAD, a shared one': [
      (res) => res.endShared(SHARED, 'id', 'today'),
      'HTTP/1.1 429 Too Many Requests\r\nA: id\r\nContent-Length: 6\r\nDate: today\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n',
      'HEAD',
    ],
  };
  for (const [name, [write, text, method]] of Object.entries(cases))
    t.same(sent(write, method), { text, isDestroyed: false }, name);
});

t.test('refuses replies that do not have their length', async (t) => {
  const whole = (headers: string[], body = 'ok'): { text: string; isDestroyed: boolean } =>
    sent((res) => {
      res.writeHead(200, headers);
      res.end(body, 'latin1');
    });
  t.match(whole(['Content-Length', '3']), { isDestroyed: true }, 'a body shorter than its length');
  t.match(whole(['Content-Length', '1']), { isDestroyed: true }, 'a body longer than its length');
  const pieces = sent((res) => {
    res.writeHead(200, LENGTH_2);
    res.write(Buffer.from('o'));
    res.write(Buffer.from('kay'));
  });
  t.equal(pieces.isDestroyed, true, 'a piece beyond the length');
  const twice = (res: PlainResponse): void => {
    res.writeHead(200, []);
    res.writeHead(200, []);
  };
  t.throws(() => sent(twice), 'a second head');
});
