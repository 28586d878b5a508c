import t from 'tap';
import { admittedMax, unexplainedDenials } from '#bench/soak/limits.ts';

t.test('early denials are wrong unless the gateway decided without Redis, as often at least', async (t) => {
  t.equal(unexplainedDenials(13, { degraded: 0 }), 13);
  t.equal(unexplainedDenials(13, { degraded: 12 }), 1, 'Redis decided one of the denials');
  t.equal(unexplainedDenials(13, { degraded: 400 }), 0);
});

t.test('more than the limit is wrong, except for the share of a process without Redis', async (t) => {
  t.equal(admittedMax(100, { workers: 2, degraded: 0 }), 100, 'Redis decided every request');
  t.equal(admittedMax(100, { workers: 1, degraded: 50 }), 100, 'a single process knows every request');
  t.equal(admittedMax(100, { workers: 2, degraded: 1 }), 150);
  t.equal(admittedMax(5, { workers: 2, degraded: 1 }), 8, 'the larger of two shares is added');
  t.equal(admittedMax(1, { workers: 4, degraded: 1 }), 2);
});
