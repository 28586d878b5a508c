import t from 'tap';
import { admittedMax, unexplainedDenials } from '#bench/soak/alone.ts';
import { limitedRoutes } from '#bench/soak/routes.ts';

t.test('the model of the soak knows every row of the shipped table', async (t) => {
  const routes = limitedRoutes();
  t.equal(routes.length, 17);
  for (const { policy, charged } of routes)
    t.ok(charged.includes(policy), `${policy} counts its own example`);
  const storage = routes.find(({ policy }) => policy === 'management-storage');
  t.same(storage?.charged, ['management', 'management-storage'], 'a request may be charged twice');
  t.equal(routes.find(({ policy }) => policy === 'auth-token')?.windowSeconds, 3600);
});

t.test('early denials are wrong unless the gateway counted alone, as often at least', async (t) => {
  t.equal(unexplainedDenials(13, { workers: 2, degraded: 0 }), 13);
  t.equal(unexplainedDenials(13, { workers: 2, degraded: 12 }), 1, 'one of them was decided by Redis');
  t.equal(unexplainedDenials(13, { workers: 2, degraded: 400 }), 0);
});

t.test(
  'more than the limit is wrong, but for the share of a process that counts alone unknowing',
  async (t) => {
    t.equal(admittedMax(100, { workers: 2, degraded: 0 }), 100, 'Redis decided all');
    t.equal(admittedMax(100, { workers: 1, degraded: 50 }), 100, 'one process knows all');
    t.equal(admittedMax(100, { workers: 2, degraded: 1 }), 150);
    t.equal(admittedMax(5, { workers: 2, degraded: 1 }), 8, 'the larger share of two');
    t.equal(admittedMax(1, { workers: 4, degraded: 1 }), 2);
  },
);
