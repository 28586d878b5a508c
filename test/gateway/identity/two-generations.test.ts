import t from 'tap';
import { TwoGenerations } from '#gateway/identity/two-generations.ts';

t.test('at most two generations are kept, however many come', async (t) => {
  const map = new TwoGenerations<number>(100);
  let largest = 0;
  for (let i = 0; i < 5000; i++) {
    map.set(`k${i}`, i);
    map.get(`k${i - 120}`);
    largest = Math.max(largest, map.size);
  }
  t.ok(largest <= 200, `${largest} entries`);
  t.equal(map.get('k0'), undefined, 'the oldest are forgotten');
  t.equal(map.get('k4999'), 4999, 'the latest are not');
});

t.test('what is used survives any number of others', async (t) => {
  const map = new TwoGenerations<object>(10);
  const used = {};
  map.set('used', used);
  for (let i = 0; i < 1000; i++) {
    map.set(`k${i}`, {});
    if (map.get('used') !== used) t.fail(`forgotten after ${i}`);
  }
  t.equal(map.get('used'), used);
});

t.test('a key has the value that it was given last', async (t) => {
  const map = new TwoGenerations<string>(1);
  map.set('a', 'old');
  map.set('b', 'pushes a into the old generation');
  map.set('a', 'new');
  t.equal(map.get('a'), 'new');
});

t.test('clear forgets both generations', async (t) => {
  const map = new TwoGenerations<number>(1);
  map.set('a', 1);
  map.set('b', 2);
  map.clear();
  t.equal(map.size, 0);
  t.equal(map.get('a'), undefined);
  t.equal(map.get('b'), undefined);
});
