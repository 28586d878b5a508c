/** An upload is sent in turn with others, no faster than the upstream reads, and in pieces that are worth a write. */
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { Client } from '#gateway/bounds/clients.ts';
import { BODY_AHEAD_BYTES, RequestBody } from '#gateway/http/request-body.ts';
import { type Transfer, TransferScheduler } from '#gateway/proxy/transfer-scheduler.ts';
import { Upload } from '#gateway/proxy/upload.ts';

const LARGE = 65_536;
const PORTION_BYTES = 262_144;
const PIECE_PRICE_BYTES = 512;

const bytes = (count: number, letter = 'x'): Buffer => Buffer.alloc(count, letter);

function start() {
  const scheduler = new TransferScheduler(() => undefined);
  const counts = { reads: 0, ended: 0, begun: 0 };
  const listener = { onSmallPieces: () => undefined };
  const body = new RequestBody(new Socket(), listener, () => void counts.reads++, false);
  const owner = {
    client: new Client('192.0.2.1'),
    upstream: { scheduler },
    isBlocked: false,
    onBodyBlocked(isBlocked: boolean) {
      this.isBlocked = isBlocked;
    },
    onBodyEnd: () => void counts.ended++,
  };
  const upload = new Upload(body, owner);
  const written: string[] = [];
  const socket = {
    writableLength: 1,
    writableNeedDrain: false,
    cork: () => undefined,
    uncork: () => undefined,
    write(part: Buffer | string): boolean {
      written.push(typeof part === 'string' ? part : `${part.length} ${part.toString('latin1', 0, 1)}`);
      return true;
    },
  };
  const begin = (head = '', isChunked = false): void =>
    upload.start({
      ...{ socket, head, isChunked },
      onBegin: () => void counts.begun++,
      onSent: () => void written.push('end'),
    });
  return { scheduler, counts, body, owner, upload, written, socket, begin };
}

/** Uses up what all bodies may send in this tick. */
function useUp(scheduler: TransferScheduler): void {
  const other: Transfer = { client: new Client('192.0.2.2'), resume: () => undefined };
  scheduler.pass(other, PORTION_BYTES - 1);
}

t.test('sends large pieces at once, and small ones together at the end of the tick', async (t) => {
  const { body, written, begin } = start();
  body.arrive(bytes(LARGE, 'a'));
  begin();
  t.same(written, [`${LARGE} a`], 'the piece that was there before');
  body.arrive(bytes(LARGE, 'b'));
  for (let i = 0; i < 10; i++) body.arrive(bytes(10, 'c'));
  t.same(written, [`${LARGE} a`, `${LARGE} b`]);
  await turn();
  t.same(written.slice(2), ['100 c']);
  body.arrive(bytes(10, 'd'));
  body.arrive(bytes(LARGE, 'e'));
  t.same(written.slice(3), ['10 d', `${LARGE} e`], 'a large piece is not copied');
  body.arrive(bytes(7, 'f'));
  body.finish();
  t.same(written.slice(5), ['7 f', 'end'], 'the end waits for nothing');
  await turn();
  t.equal(written.length, 7);
});

t.test('tells its owner of the end, and frames the parts', async (t) => {
  for (const part of [bytes(LARGE), null]) {
    const { body, counts, written, begin } = start();
    if (part === null) body.finish();
    else body.arrive(part);
    begin('head;', true);
    t.match(counts, { begun: 1, ended: part === null ? 1 : 0 });
    body.finish();
    t.match(counts, { begun: 1, ended: 1 });
    const chunk = part === null ? ['head;0\r\n\r\n'] : ['head;10000\r\n', `${LARGE} x`, '\r\n0\r\n\r\n'];
    t.strictSame(written, [...chunk, 'end']);
  }
});

t.test('sends the head alone if nothing of the body comes in the same tick', async (t) => {
  const { body, counts, written, begin } = start();
  begin('head;');
  t.strictSame([counts.begun, written], [0, []], 'bytes that come before are no reply');
  await turn();
  t.strictSame([counts.begun, written], [1, ['head;']]);
  body.arrive(bytes(10, 'a'), true);
  t.strictSame(written.slice(1), ['10 a', 'end']);
});

t.test('waits until the upstream has read, and lets the client send on then', async (t) => {
  const { body, owner, upload, counts, written, socket, begin } = start();
  begin();
  upload.onDrain();
  socket.writableNeedDrain = true;
  t.ok(body.arrive(bytes(LARGE, 'a')), 'it was taken, so reading goes on');
  t.ok(body.arrive(bytes(BODY_AHEAD_BYTES - 1, 'b')));
  t.notOk(body.arrive(bytes(LARGE, 'c')), 'too much waits');
  await turn();
  t.same(written, [`${LARGE} a`]);
  t.equal(counts.reads, 0);
  t.ok(owner.isBlocked);
  upload.onDrain();
  t.same(written.slice(1), [`${BODY_AHEAD_BYTES - 1} b`], 'one part for each drain');
  t.equal(counts.reads, 0);
  upload.onDrain();
  t.equal(counts.reads, 1, 'reading begins again when little waits');
  body.finish();
  t.notOk(written.includes('end'));
  socket.writableNeedDrain = false;
  upload.onDrain();
  t.same(written.slice(2), [`${LARGE} c`, 'end']);
  t.notOk(owner.isBlocked);
});

t.test('pays for each piece that it joins', async (t) => {
  const { body, written, begin } = start();
  begin();
  const pieces = PORTION_BYTES / PIECE_PRICE_BYTES;
  for (let i = 0; i < pieces; i++) body.arrive(bytes(31));
  t.same(written, [], 'too few bytes for a part of their own');
  body.arrive(bytes(LARGE));
  t.same(written, [`${31 * pieces} x`], 'their price was the whole portion');
  await turn();
  t.same(written.slice(1), [`${LARGE} x`]);
});

t.test('an upload that was stopped writes nothing, and nobody calls it', async (t) => {
  const { body, scheduler, upload, written, begin } = start();
  begin();
  useUp(scheduler);
  body.arrive(bytes(LARGE));
  body.arrive(bytes(10));
  upload.stop();
  t.equal(body.onArrival, null);
  body.arrive(bytes(LARGE));
  body.finish();
  upload.onDrain();
  await turn();
  await turn();
  t.equal(written.length, 1);
  t.equal(body.waitingBytes, LARGE + 10);

  const next = (): void => undefined;
  body.onArrival = next;
  upload.stop();
  t.equal(body.onArrival, next, 'it leaves the next reader alone');
});
