/**
 * Tests deadlines on the real clock: none fires early, none fires after it was cancelled, and all others fire in order.
 */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { type DeadlineEntry, Deadlines } from '#gateway/proxy/deadlines.ts';
import { busyFor } from '#test/support/busy.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { startRawUpstream } from './exchange.ts';

const TIMEOUT_MS = 60;
const clock = (): number => performance.now();

function start(): {
  deadlines: Deadlines;
  add(name: string): DeadlineEntry;
  gaveUp: { name: string; afterMs: number }[];
} {
  const deadlines = new Deadlines(TIMEOUT_MS, clock);
  const gaveUp: { name: string; afterMs: number }[] = [];
  const add = (name: string): DeadlineEntry => {
    const since = clock();
    const one: DeadlineEntry = {
      deadlineAt: 0,
      earlier: null,
      later: null,
      onDeadline: () => gaveUp.push({ name, afterMs: clock() - since }),
    };
    deadlines.add(one);
    return one;
  };
  return { deadlines, add, gaveUp };
}

t.test('calls in order of arrival, and not before their time', async (t) => {
  const { add, gaveUp } = start();
  for (const name of ['a', 'b']) add(name);
  await sleep(TIMEOUT_MS / 2);
  add('c');
  await until(() => gaveUp.length === 3);
  t.strictSame(
    gaveUp.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  for (const { name, afterMs } of gaveUp) t.ok(afterMs >= TIMEOUT_MS, `${name} after ${afterMs} ms`);
});

t.test('a deadline that is cancelled anywhere in the list is not called', async (t) => {
  const { deadlines, add, gaveUp } = start();
  const [first, , middle, , last] = ['a', 'b', 'c', 'd', 'e'].map(add);
  for (const one of [middle, first, last]) if (one !== undefined) deadlines.delete(one);
  // Cancelling twice does no harm.
  if (middle !== undefined) deadlines.delete(middle);
  await until(() => gaveUp.length === 2);
  await sleep(TIMEOUT_MS);
  t.strictSame(
    gaveUp.map(({ name }) => name),
    ['b', 'd'],
  );
});

t.test('an empty list can be used again, also from within a call', async (t) => {
  const { deadlines, add, gaveUp } = start();
  deadlines.delete(add('a'));
  // The timer of the first entry finds no entry, or one that is not due.
  await sleep(TIMEOUT_MS * 0.75);
  const again: DeadlineEntry = {
    deadlineAt: 0,
    earlier: null,
    later: null,
    onDeadline: () => {
      gaveUp.push({ name: 'b', afterMs: 0 });
      add('c');
    },
  };
  deadlines.add(again);
  await until(() => gaveUp.length === 2);
  t.strictSame(
    gaveUp.map(({ name }) => name),
    ['b', 'c'],
  );
  t.ok((gaveUp[1]?.afterMs ?? 0) >= TIMEOUT_MS);
});

t.test('a reply that has arrived when the time is over is no timeout', async (t) => {
  const upstream = await startRawUpstream(t, () => undefined);
  const { port } = await startBareServer(t, { origin: upstream.origin, timeoutMs: 1500 });
  const client = sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => upstream.sockets.length === 1);
  // Now timers are next, and then sockets are read.
  await turn();
  upstream.sockets[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  busyFor(2000);
  t.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 200 /);
  client.socket.destroy();
});
