/**
 * Tests deadlines on the real clock: none fires early, none fires after it was cancelled, and all others fire in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type DeadlineEntry, Deadlines } from '#gateway/proxy/deadlines.ts';

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

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(5);
}

t.test('in order of arrival, and not before their time', async (t) => {
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

t.test('whoever leaves, from wherever in the list, is not given up', async (t) => {
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

t.test('an empty list begins anew, also from within', async (t) => {
  const { deadlines, add, gaveUp } = start();
  deadlines.delete(add('a'));
  // The timer of the first entry finds none, or one that is not due.
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
