/** routes.md lists the routes of the admin API. */
import t from 'tap';
import { codeIn, readPage, tableOf } from '#test/docs/pages.ts';
import { buildTestAdmin } from '#test/support/admin.ts';
import { startTestGateway } from '#test/support/gateway.ts';

t.test('routes.md lists exactly the routes of the admin API', async (t) => {
  const admin = buildTestAdmin(await startTestGateway(t));
  t.teardown(() => admin.close());
  const found: string[] = [];
  admin.addHook('onRoute', ({ method, url }) => {
    if (method !== 'HEAD' && url.startsWith('/api/')) found.push(`${method} ${url.replace(':id', 'ID')}`);
  });
  await admin.ready();
  const listed = tableOf(readPage('test/gateway/operate/admin/routes.md'), 'Route', 'Body').map(
    ([route = '']) => codeIn(route),
  );
  t.ok(listed.length >= 17);
  t.strictSame(listed.map((route) => route.replace(/\?.*/, '')).sort(), found.sort());
});
