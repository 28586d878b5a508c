/** The page for operators of the docs lists the routes of the admin API. */
import t from 'tap';
import { codeIn, readPage, tableOf } from '#test/docs/pages.ts';
import { buildTestAdmin } from '#test/support/admin.ts';
import { startTestGateway } from '#test/support/gateway.ts';

t.test('docs/operating.md lists exactly the routes of the admin API', async (t) => {
  const admin = buildTestAdmin(await startTestGateway(t));
  t.teardown(() => admin.close());
  const found: string[] = [];
  admin.addHook('onRoute', ({ method, url }) => {
    if (method !== 'HEAD' && url.startsWith('/api/')) found.push(`${method} ${url.replace(':id', 'ID')}`);
  });
  await admin.ready();
  const listed = tableOf(readPage('docs/operating.md'), 'Route', 'Body').map(([route = '']) => codeIn(route));
  t.ok(listed.length >= 17);
  const removed = 'GET /api/openapi.json';
  t.strictSame([...listed.map((route) => route.replace(/\?.*/, '')), removed].sort(), found.sort());
  const origin = await admin.listen({ host: '127.0.0.1', port: 0 });
  const gone = await fetch(`${origin}/api/openapi.json`);
  t.match([gone.status, await gone.json()], [404, { message: /operating\.md lists the routes/ }]);
});
