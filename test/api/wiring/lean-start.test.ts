/** Modules that the API loads when it starts without settings. Others are loaded at their first use. */
import t from 'tap';
import { holdTo, loadedBy } from '#test/support/loaded-modules.ts';
import { freePort } from '#test/support/ports.ts';

/** For schemas, the database, addresses and cookies. */
const PACKAGES = [
  'better-sqlite3',
  'ipaddr.js',
  'kysely',
  'pg-connection-string',
  'typebox',
  'fastify-plugin',
  '@fastify/cookie',
  'cookie',
];

t.test('an API on SQLite without mails loads only the listed modules', async (t) => {
  const env = { API_PORT: String(await freePort()), DATABASE_URL: 'file::memory:' };
  const loaded = await loadedBy(t, 'api/main.ts', env);
  holdTo(t, loaded, PACKAGES, { own: 300, all: 1200 });
});

t.test('the first requests load the modules they need, also two requests at once', async (t) => {
  const port = await freePort();
  const env = { API_PORT: String(port), DATABASE_URL: 'file::memory:' };
  const { packages } = await loadedBy(t, 'api/main.ts', env, async () => {
    const ask = async (path: string): Promise<number> => {
      const reply = await fetch(`http://127.0.0.1:${port}${path}`);
      await reply.arrayBuffer();
      return reply.status;
    };
    for (const path of ['/api/docs/openapi.json', '/api/v1/client/og?name=Survey', '/api/v2/health'])
      t.strictSame(await Promise.all([ask(path), ask(path)]), [200, 200], path);
  });
  t.ok(packages.has('ajv'), 'the serializer');
});
