/** The recipes for Formbricks, with real proxies and the lines of the page. Formbricks itself is a stand-in. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readPage } from '#test/docs/pages.ts';
import {
  checksOf,
  floodLogins,
  hopCountOf,
  isReachedOnlyBy,
  linesWork,
  loginsAt,
  RECIPES,
  runRecipe,
  startTraefikRecipe,
} from '#test/support/formbricks-recipes.ts';
import { type Formbricks, startFormbricks } from '#test/support/formbricks-stand-in.ts';
import { environment, launch } from '#test/support/gateway-process.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { nginxCommand, startProxyProcess } from '#test/support/proxy-process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { inOneWindow } from '#test/support/window.ts';

const page = readPage('docs/in-front-of-formbricks.md');
/** Ports that must be closed listen here, so that nothing listens on the same port of 127.0.0.1. */
const INSIDE = '127.0.0.2';

/** After the lines of the page, the limit of the login is used up. */
async function floodStops(t: Test, site: string, formbricks: Formbricks): Promise<void> {
  t.strictSame(await floodLogins([site], 50), { 'own 429': 50 }, 'a flood of logins stops at the gateway');
  t.equal(loginsAt(formbricks), 5);
  t.ok(isReachedOnlyBy('127.0.0.1', formbricks), 'Formbricks sees the address of the client');
}

t.test('Docker Compose', async (t) => {
  const formbricks = await startFormbricks(t, { hopCount: hopCountOf(RECIPES.compose), host: INSIDE });
  const { origin } = await runRecipe(t, RECIPES.compose, formbricks);
  const closed = `http://127.0.0.1:${formbricks.port}`;
  await linesWork(t, checksOf(page, RECIPES.compose, { site: origin, closed }));
  await floodStops(t, origin, formbricks);
  const records = await fetch(`${origin}/api/v3/feedbackRecords`);
  t.match(await records.json(), { code: 'not_found' }, 'feedback records are not available');
});

t.test('Traefik, which is not run here: a stand-in reads the labels', async (t) => {
  const formbricks = await startFormbricks(t, { hopCount: hopCountOf(RECIPES.traefik), host: INSIDE });
  const { port } = await startTraefikRecipe(t, formbricks, page);
  const site = `http://127.0.0.1:${port}`;
  const closed = `http://127.0.0.1:${formbricks.port}`;
  await linesWork(t, checksOf(page, RECIPES.traefik, { site, closed }));
  t.equal(loginsAt(formbricks), 5);
  t.ok(isReachedOnlyBy('127.0.0.1', formbricks), 'Formbricks sees the address of the client');
});

for (const name of ['nginx', 'caddy'] as const) {
  t.test(name, async (t) => {
    const formbricks = await startFormbricks(t, { hopCount: hopCountOf(RECIPES.proxied) });
    const gateway = await runRecipe(t, RECIPES.proxied, formbricks, {
      GATEWAY_HOST: INSIDE,
      GATEWAY_PORT: String(await freePort()),
    });
    const port = await startProxy(t, name, `${INSIDE}:${gateway.port}`);
    const site = `http://127.0.0.1:${port}`;
    const closed = `http://127.0.0.1:${gateway.port}`;
    await linesWork(t, checksOf(page, RECIPES.proxied, { site, closed }));
    await floodStops(t, site, formbricks);
    const body = 'x'.repeat(2_000_000);
    const sent = await fetch(`${site}/api/v2/client/w/responses`, { method: 'POST', body });
    t.equal(sent.status, 200, 'a large body passes');
  });
}

/** The file of the examples, with other addresses. @returns the port of the proxy */
async function startProxy(t: Test, name: 'nginx' | 'caddy', gateway: string): Promise<number> {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const read = (file: string): string =>
    readFileSync(join(projectRoot, 'examples/formbricks', file), 'utf8').replace('127.0.0.1:8080', gateway);
  if (name === 'nginx') {
    const site = read('nginx.conf').replace('listen 80;', `listen 127.0.0.1:${port};`);
    const [program = '', ...args] = nginxCommand(folder, site);
    execFileSync(program, ['-t', ...args], { stdio: 'pipe' });
    await startProxyProcess(t, [program, ...args], port, folder);
  } else {
    const site = read('Caddyfile').replace('forms.example.org', `http://127.0.0.1:${port}`);
    const file = join(folder, 'Caddyfile');
    writeFileSync(file, `{\n\tadmin off\n\tauto_https off\n}\n${site}`);
    await startProxyProcess(t, ['caddy', 'run', '--adapter', 'caddyfile', '--config', file], port, folder);
  }
  return port;
}

t.test('two gateways: of a flood of logins from one address, five reach Formbricks', async (t) => {
  const redis = await startRedis(t);
  // RATE_LIMITING_DISABLED=1: only the gateway limits.
  const formbricks = await startFormbricks(t, { isUnlimited: true });
  const sites: string[] = [];
  for (let i = 0; i < 2; i++) {
    const env = await environment({
      GATEWAY_UPSTREAM: formbricks.origin,
      GATEWAY_REDIS_URL: redis.url,
      GATEWAY_POLICIES: 'examples/formbricks.yaml',
    });
    await launch(t, env);
    sites.push(`http://127.0.0.1:${env.GATEWAY_PORT}`);
  }
  let before = 0;
  const results = await inOneWindow(60_000, () => {
    before = loginsAt(formbricks);
    return floodLogins(sites, 200);
  });
  t.strictSame(results, { '401': 5, 'own 429': 195 });
  t.equal(loginsAt(formbricks) - before, 5);
});
