import t from 'tap';
import { limitedRoutes } from '../../bench/soak/routes.ts';

t.test('the model of the soak knows every row of the shipped table', async (t) => {
  const routes = limitedRoutes();
  t.equal(routes.length, 17);
  for (const { policy, charged } of routes)
    t.ok(charged.includes(policy), `${policy} counts its own example`);
  const storage = routes.find(({ policy }) => policy === 'management-storage');
  t.same(storage?.charged, ['management', 'management-storage'], 'a request may be charged twice');
  t.equal(routes.find(({ policy }) => policy === 'auth-token')?.windowSeconds, 3600);
});
