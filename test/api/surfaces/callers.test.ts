/** The opening comment of every routes file names its callers correctly. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fastify from 'fastify';
import t from 'tap';
import type { Context, Routes } from '#api/context.ts';
import { surfaceOf } from '#api/surfaces/surfaces.ts';
import { startApi } from '#test/support/api-app.ts';
import { projectRoot } from '#test/support/process.ts';

/** The handlers of these files check the credentials themselves, so their options do not name the callers. */
const handlersAuthenticate: ReadonlySet<string> = new Set([
  'api/resources/accounts/account-routes.ts',
  'api/resources/storage/file-routes.ts',
]);

const api = await startApi(t);

const files = globSync('api/resources/**/*.ts', { cwd: projectRoot })
  .sort()
  .map((file) => ({ file, text: readFileSync(join(projectRoot, file), 'utf8') }))
  .filter(({ text }) => /^export const \w+: Routes\b/m.test(text));

t.test('finds many such files', async (t) => {
  t.ok(files.length > 20);
});

for (const { file, text } of files) {
  t.test(file, async (t) => {
    const opening = text.slice(0, text.indexOf('*/'));
    const callers = opening.split('Callers: ')[1] ?? '';
    t.not(callers, '', 'the opening comment has a paragraph that begins with "Callers:"');
    if (handlersAuthenticate.has(file)) return;
    const accepted = await credentialsOf(file, text, api.context);
    const takes = (...kinds: readonly (string | null)[]) => kinds.some((kind) => accepted.has(kind));
    t.equal(/\banybody\b/.test(callers), takes(null), 'anybody');
    t.equal(/\bAPI keys?\b/.test(callers), takes('key', 'any'), 'API keys');
    t.equal(/\bsessions?\b/.test(callers), takes('session', 'any'), 'sessions');
  });
}

/** Returns the credentials that the routes of a file accept, as the auth plugin decides it. */
async function credentialsOf(
  file: string,
  text: string,
  context: Context,
): Promise<ReadonlySet<string | null>> {
  const accepted = new Set<string | null>();
  const app = fastify();
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => () => '');
  app.addHook('onRoute', ({ url, config }) => {
    accepted.add(config?.credentials === undefined ? surfaceOf(url).credentials : config.credentials);
  });
  const exported = (await import(join(projectRoot, file))) as Record<string, Routes>;
  for (const [, name = ''] of text.matchAll(/^export const (\w+): Routes\b/gm)) {
    const routes = exported[name];
    if (routes !== undefined) await app.register(routes, { context });
  }
  await app.ready();
  await app.close();
  return accepted;
}
