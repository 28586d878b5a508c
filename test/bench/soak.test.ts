import t from 'tap';
import { admittedMax } from '#bench/soak/limits.ts';

t.test('more than the limit is wrong, except for the share of a process without Redis', async (t) => {
  t.equal(admittedMax(100, 2, 0), 100, 'Redis decided every request');
  t.equal(admittedMax(100, 1, 50), 100, 'a single process knows every request');
  t.equal(admittedMax(100, 2, 1), 150);
  t.equal(admittedMax(5, 2, 1), 8, 'the larger of two shares is added');
  t.equal(admittedMax(1, 4, 1), 2);
});
