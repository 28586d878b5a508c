/** A body waits in pieces, of which only little is read ahead. */
import { Socket } from 'node:net';
import t from 'tap';
import { BODY_AHEAD_BYTES, JOINED_BYTES_MAX, RequestBody } from '#gateway/http/request-body.ts';

function start() {
  const calls = { reads: 0, small: 0 };
  const listener = { onSmallPieces: () => void calls.small++ };
  return { calls, body: new RequestBody(new Socket(), listener, () => void calls.reads++, false) };
}

const bytes = (count: number, letter = 'x'): Buffer => Buffer.alloc(count, letter);

t.test('asks the server to stop reading when enough waits, and to go on when it was taken', async (t) => {
  const { body, calls } = start();
  t.ok(body.arrive(bytes(BODY_AHEAD_BYTES - 1)));
  t.notOk(body.isFull);
  t.notOk(body.arrive(bytes(1)));
  t.ok(body.isFull);
  t.equal(calls.reads, 0);
  t.equal(body.take()?.length, BODY_AHEAD_BYTES);
  t.equal(calls.reads, 1);
  t.equal(body.take(), null);
  t.equal(calls.reads, 1, 'once');
});

t.test('a body that has arrived is not full', async (t) => {
  const { body, calls } = start();
  t.ok(body.arrive(bytes(BODY_AHEAD_BYTES), true));
  t.notOk(body.isFull);
  body.take();
  t.equal(calls.reads, 0, 'nothing is left to read');
});

t.test('joins small pieces, and does not copy large ones', async (t) => {
  const { body } = start();
  const large = bytes(JOINED_BYTES_MAX, 'l');
  for (const piece of [bytes(1, 'a'), bytes(2, 'b'), large, bytes(3, 'c')]) body.arrive(piece);
  t.equal(body.waitingBytes, JOINED_BYTES_MAX + 6);
  t.equal(body.take()?.toString(), 'abb');
  t.equal(body.take(), large);
  t.equal(body.take()?.toString(), 'ccc');
  t.equal(body.waitingBytes, 0);
});

t.test('shows what waits, and keeps it', async (t) => {
  const { body } = start();
  t.equal(body.look().length, 0);
  body.arrive(bytes(2, 'a'));
  t.equal(body.look().toString(), 'aa');
  body.arrive(bytes(2, 'b'));
  t.equal(body.look().toString(), 'aabb');
  t.equal(body.take()?.toString(), 'aabb');
});

t.test('tells of each piece and of the end', async (t) => {
  const { body } = start();
  const sizes: number[] = [];
  body.onArrival = (size) => void sizes.push(size);
  body.arrive(bytes(2));
  body.arrive(bytes(3));
  body.finish();
  t.same(sizes, [2, 3, 0]);
});

t.test('calls back when the whole body has arrived, and only then', async (t) => {
  for (const isLast of [true, false]) {
    const { body } = start();
    let calls = 0;
    body.whenComplete(() => void calls++);
    body.arrive(bytes(2));
    t.equal(calls, 0);
    body.arrive(bytes(2), isLast);
    if (!isLast) body.finish();
    t.equal(calls, 1);
    t.equal(body.onArrival, null);
    t.equal(body.waitingBytes, 4, 'nothing is taken');
  }
});

t.test('drops the rest of a body in too small pieces', async (t) => {
  const { body, calls } = start();
  for (let i = 0; i < 2000; i++) body.arrive(bytes(1));
  t.equal(calls.small, 1);
  t.equal(body.waitingBytes, 999);
  t.equal(body.pieces.isCut, true);
});
