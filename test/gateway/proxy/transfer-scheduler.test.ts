import t from 'tap';
import { Client } from '#gateway/bounds/clients.ts';
import { type Transfer, TransferScheduler } from '#gateway/proxy/transfer-scheduler.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { startBareServer } from './bare-server.ts';
import { send } from './exchange.ts';

const PIECE_BYTES = 65_536;
const PORTION_BYTES = 262_144;
const PIECE_PRICE_BYTES = 512;

interface Recorded extends Transfer {
  readonly name: string;
}

/** Creates transfers that always have more data. Records the pieces of each tick, in order. */
function start(): {
  turns: TransferScheduler;
  collections: () => number;
  add(name: string, client: Client): Recorded;
  readonly order: string[];
} {
  let collections = 0;
  const turns = new TransferScheduler(() => {
    collections++;
  });
  const order: string[] = [];
  const add = (name: string, client: Client): Recorded => {
    const transfer: Recorded = {
      name,
      client,
      resume() {
        do order.push(name);
        while (turns.pass(transfer, PIECE_BYTES));
      },
    };
    return transfer;
  };
  return { turns, collections: () => collections, add, order };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test('forwards what fits into a portion, and the rest in a later turn', async (t) => {
  const { turns, add, order } = start();
  const [a, b] = [add('a', new Client('192.0.2.1')), add('b', new Client('192.0.2.2'))];
  t.ok(turns.pass(a, PORTION_BYTES - 1));
  t.notOk(turns.pass(b, 1));
  t.same(order, [], 'nothing is forwarded in the same tick');
  await nextTurn();
  t.equal(order[0], 'b');
  t.notOk(order.includes('a'), 'a never had to wait');
  turns.leave(b);
});

t.test('each piece has a minimum price, however small it is', async (t) => {
  const { turns, add } = start();
  const [a, b] = [add('a', new Client('192.0.2.1')), add('b', new Client('192.0.2.2'))];
  const passed = Array.from({ length: PORTION_BYTES / PIECE_PRICE_BYTES - 1 }, () => turns.pass(a, 1));
  t.ok(passed.every(Boolean));
  t.notOk(turns.pass(a, 1));
  await nextTurn();
  t.notOk(turns.pass(b, 1000, 1000), 'pieces that are forwarded together are priced one by one');
  turns.leave(a);
  turns.leave(b);
});

t.test('clients take turns, however many bodies one has', async (t) => {
  const { turns, add, order } = start();
  const [many, one] = [new Client('192.0.2.1'), new Client('192.0.2.2')];
  const transfers = [...Array.from({ length: 64 }, (_, i) => add(`many-${i}`, many)), add('one', one)];
  for (const transfer of transfers) turns.pass(transfer, PORTION_BYTES);
  for (let turn = 1; turn <= 8; turn++) {
    await nextTurn();
    t.equal(order.length, (turn * PORTION_BYTES) / PIECE_BYTES, 'one portion in each tick');
  }
  t.equal(order.filter((name) => name === 'one').length, order.length / 2, 'half for each client');
  t.equal(new Set(order).size, 5, 'bodies of one client take turns');
  for (const transfer of transfers) turns.leave(transfer);
});

t.test('a client that leaves is not called, and neither are its bodies', async (t) => {
  const { turns, add, order } = start();
  const client = new Client('192.0.2.1');
  const [a, b] = [add('a', client), add('b', client)];
  for (const transfer of [a, b]) turns.pass(transfer, PORTION_BYTES);
  turns.leave(a);
  turns.leave(a);
  turns.leave(b);
  turns.leave(add('unknown', client));
  await nextTurn();
  t.same(order, []);
});

t.test('freed buffers do not count for the collection', async (t) => {
  const { turns, collections, add } = start();
  const a = add('a', new Client('192.0.2.1'));
  turns.pass(a, 12 * 1024 * 1024);
  turns.freed(8 * 1024 * 1024);
  turns.leave(a);
  await nextTurn();
  t.equal(collections(), 0);
  turns.pass(a, 4 * 1024 * 1024);
  turns.leave(a);
  await nextTurn();
  t.equal(collections(), 1);
});

t.test('large bodies need no collection, with a length and in chunks', async (t) => {
  const download = Buffer.alloc(32 * 1024 * 1024);
  const upstream = await startUpstream(t, (req, res) => {
    req.resume().on('end', async () => {
      for (let at = 0; req.url === '/chunks' && at < download.length; at += 33_000) {
        res.write(download.subarray(at, at + 33_000));
        // All writes of one tick are one chunk.
        await nextTurn();
      }
      res.end(req.url === '/whole' ? download : '');
    });
  });
  let collections = 0;
  const { port } = await startBareServer(t, {
    origin: upstream.origin,
    collectYoung: () => void collections++,
  });
  const body = 'x'.repeat(32 * 1024 * 1024);
  t.equal((await send(port, '/', { method: 'POST', body })).status, 200);
  t.equal(collections, 0);
  t.equal((await send(port, '/whole')).status, 200);
  t.equal(collections, 0);
  t.equal((await send(port, '/chunks')).status, 200);
  t.equal(collections, 0);
});
