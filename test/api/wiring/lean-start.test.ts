/** Modules that the API loads when it starts without settings. Others are loaded at their first use. */
import t from 'tap';
import { FASTIFY_AND_LOG, holdTo, loadedBy } from '#test/support/loaded-modules.ts';
import { freePort } from '#test/support/ports.ts';

/** Maximum number of modules of each package in a default start. */
const MODULES_MAX = {
  own: 370,
  // Schemas, database and addresses:
  'better-sqlite3': 15,
  'ipaddr.js': 1,
  kysely: 257,
  typebox: 373,
  ...FASTIFY_AND_LOG,
  // The web framework:
  fastify: 33,
  'fastify-plugin': 3,
  '@fastify/cookie': 2,
  cookie: 1,
} as const;

t.test('an API on SQLite without mails loads only the listed modules', async (t) => {
  const env = { API_PORT: String(await freePort()), DATABASE_URL: 'file::memory:' };
  const loaded = await loadedBy(t, 'api/main.ts', env);
  holdTo(t, loaded, MODULES_MAX);
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
  for (const name of ['@fastify/swagger', 'ajv']) t.ok(packages.has(name), name);
});
