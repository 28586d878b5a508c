/** A shared reply is checked once, and no socket sends an id that was meant for another one. */
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import t from 'tap';
import { SharedReply } from '#gateway/http/shared-reply.ts';

const GAP = '~~~~';
const BODY = `{"id":"${GAP}"}`;
const LENGTH = ['Content-Length', String(BODY.length)];

const shared = (): SharedReply => new SharedReply(429, ['Id', GAP, ...LENGTH], BODY, GAP);

t.test('fields are shared only if each can be written, and one is the length of the body', async (t) => {
  for (const headers of [
    ['A', 'b\r\nC: d'],
    ['A b', 'c'],
    ['', 'c'],
    ['A', '\0'],
    ['A', '\u{1f642}'],
  ])
    t.throws(() => new SharedReply(429, [...LENGTH, ...headers], BODY, GAP), /cannot be written/);
  t.throws(() => new SharedReply(429, ['A', 'b'], BODY, GAP), /Content-Length/);
  t.throws(() => new SharedReply(429, LENGTH, `${BODY} `, GAP), /Content-Length/);
});

/** @param write is called with each piece, and with what tells the socket that it was taken */
function socketWith(write: (piece: Buffer, taken: () => void) => void): Socket {
  const stream = new Writable({ write: (piece: Buffer, _encoding, taken) => write(piece, taken) });
  return stream as Pick<Socket, keyof Writable> as Socket;
}

t.test('the id stands in each gap, and has to fit', async (t) => {
  const reply = shared();
  const texts: string[] = [];
  const socket = socketWith((piece, taken) => {
    texts.push(piece.toString('latin1'));
    taken();
  });
  const textOf = (id: string, date: string): string =>
    `HTTP/1.1 429 Too Many Requests\r\nId: ${id}\r\nContent-Length: 13\r\nConnection: keep-alive\r\n` +
    `Keep-Alive: timeout=5\r\nDate: ${date}\r\n\r\n{"id":"${id}"}`;
  reply.writeTo(socket, 'id-1', 'timeout=5', 'today');
  reply.writeTo(socket, 'id-2', 'timeout=5', 'today');
  reply.writeTo(socket, 'id-3', 'timeout=5', 'tomorrow');
  t.strictSame(texts, [textOf('id-1', 'today'), textOf('id-2', 'today'), textOf('id-3', 'tomorrow')]);
  t.throws(() => reply.writeTo(socket, 'id', 'timeout=5', 'today'), /as long as its gap/);
});

t.test('a reply that the system has not taken keeps its id', async (t) => {
  const reply = shared();
  const waiting: Buffer[] = [];
  const slow = socketWith((piece) => waiting.push(piece));
  const quick = socketWith((_piece, taken) => taken());
  reply.writeTo(quick, 'id-1', 'timeout=5', 'today');
  reply.writeTo(slow, 'id-2', 'timeout=5', 'today');
  reply.writeTo(quick, 'id-3', 'timeout=5', 'today');
  t.match(waiting.join(''), /Id: id-2.*"id":"id-2"/s);
});
