/** A reply that a client could read in two ways closes its connection. */

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import t from 'tap';
import { parse } from 'yaml';
import { DateField } from '#gateway/http/date-field.ts';
import { SharedReply } from '#gateway/http/shared-reply.ts';
import { PlainRequest } from '#gateway/listen/plain/plain-request.ts';
import { PlainResponse } from '#gateway/listen/plain/plain-response.ts';

interface Reply {
  readonly name: string;
  readonly method?: string;
  readonly status: number;
  readonly reason?: string;
  /** Alternating names and values. */
  readonly fields?: string[];
  readonly isFlushed?: boolean;
  readonly pieces?: readonly string[];
  readonly end?: string;
  /** The id and the date. Then it has none of the parts above. */
  readonly shared?: readonly [string, string];
  readonly closes?: boolean;
  readonly sent: string;
}

const REPLIES: readonly Reply[] = parse(
  readFileSync(join(import.meta.dirname, 'plain-response.yaml'), 'utf8'),
);

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

function writeTo(res: PlainResponse, reply: Reply): void {
  const { status, reason, fields = [], isFlushed, pieces = [], end, shared, closes } = reply;
  if (closes) res.shouldKeepAlive = false;
  if (shared !== undefined) {
    res.endShared(SHARED, ...shared);
    return;
  }
  if (reason === undefined) res.writeHead(status, fields);
  else res.writeHead(status, reason, fields);
  if (isFlushed) res.flushHeaders();
  for (const piece of pieces) res.write(Buffer.from(piece));
  if (end === undefined) res.end();
  else res.end(end, 'latin1');
}

for (const reply of REPLIES)
  t.test(`sends a well-formed reply: ${reply.name}`, async (t) => {
    const text = reply.sent.replaceAll('\n', '\r\n');
    t.same(
      sent((res) => writeTo(res, reply), reply.method),
      { text, isDestroyed: false },
    );
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
