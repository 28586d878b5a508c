/**
 * The page for Formbricks: its tables agree with the policy file, its settings and spellings with the gateway, and its
 * recipes stop a flood in front of a stand-in for Formbricks. test/system/proxies/ runs the lines of the page.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { limitTable } from '#api/limits/table.ts';
import { GATEWAY_VARIABLES, readConfig } from '#gateway/config.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import {
  entryPointsOf,
  floodLogins,
  hopCountOf,
  isReachedOnlyBy,
  loginsAt,
  RECIPES,
  readRecipe,
  runRecipe,
  startTraefikRecipe,
} from '#test/support/formbricks-recipes.ts';
import { startFormbricks } from '#test/support/formbricks-stand-in.ts';
import { projectRoot } from '#test/support/process.ts';
import { codeIn, readPage, tableOf } from './pages.ts';

const page = readPage('docs/in-front-of-formbricks.md');
const example = readFileSync(join(projectRoot, 'examples/formbricks.yaml'), 'utf8');
const set = loadPolicies(example, 'examples/formbricks.yaml');

t.test('the table has the first limits of the policy file', async (t) => {
  const windows: Readonly<Record<number, string>> = { 60: 'a minute', 3600: 'an hour' };
  const who: Readonly<Record<string, string>> = { ip: 'client address', 'api-key': 'API key' };
  const own = set.policies.map(({ route, limit, windowSeconds, identifier }) =>
    [route.text, `${limit} ${windows[windowSeconds]}`, who[identifier.name]].join(' | '),
  );
  const shown = tableOf(page, 'Route', 'Limit', 'Per').map(([route = '', limit, per]) =>
    [codeIn(route), limit, per].join(' | '),
  );
  t.equal(shown.length, 17);
  t.strictSame([...shown].sort(), own.slice(0, 17).sort());
  for (const { text } of set.exclude) {
    t.ok(page.prose.includes(`\`${text.replace(/ \*$/, '')}\``), `${text} is named as excluded`);
  }
  for (const [{ text }] of set.lists?.routes ?? []) {
    t.ok(page.prose.includes(`\`${text}\``), `${text} is named as closed`);
  }
});

t.test('the policies that the page adds fit into the file and deny at their limit', (t) => {
  const added = page.blocks.filter(({ text }) => text.startsWith('- name: ')).map(({ text }) => text);
  t.equal(added.length, 2);
  const tests = `
  - { name: a, request: GET /api/mcp, times: 31, reply: 401, expect: { policies: [mcp, mcp-failures], allowed: 30 } }
  - { name: b, request: GET /api/mcp, times: 31, expect: { allowed: 31 } }
  - { name: c, request: GET /api/v3/feedbackRecords/1, times: 601, expect: { allowed: 600 } }
`;
  const policies = added.join('').replace(/^/gm, '  ').trimEnd();
  const file = `${example.replace('\npolicies:\n', () => `\npolicies:\n${policies}\n`)}${tests}`;
  const failed = runTests(loadPolicies(file, 'formbricks.yaml')).map(({ name }) => name);
  t.strictSame(failed, ['MCP'], 'apart from the test that names all policies of the route');
  t.end();
});

for (const [name, { file }] of Object.entries(RECIPES)) {
  t.test(`${name}: the variables, files and names of the Compose file exist`, async (t) => {
    const { services, volumes = {}, networks = {} } = readRecipe(file);
    const { environment, command, volumes: mounts, depends_on: needed } = services.gateway;
    const { GATEWAY_POLICIES = '' } = environment;
    const known = new Set<string>(GATEWAY_VARIABLES.map((variable) => variable.name));
    for (const variable of Object.keys(environment)) t.ok(known.has(variable), variable);
    t.doesNotThrow(() => readConfig(environment));
    t.equal(command, undefined, 'the command is that of the image');
    t.strictSame(mounts, ['./floodgate/examples:/app/examples:ro'], 'the folder is mounted');
    t.equal(GATEWAY_POLICIES, 'examples/formbricks.yaml');
    t.ok(existsSync(join(projectRoot, GATEWAY_POLICIES)));
    for (const other of needed) t.ok(other in services, other);
    const [volume = ''] = services['gateway-redis'].volumes[0]?.split(':') ?? [];
    t.ok(volume in volumes, volume);
    for (const service of Object.values(services)) {
      const joined = service.networks ?? {};
      for (const network of Array.isArray(joined) ? joined : Object.keys(joined))
        t.ok(network === 'default' || network in networks, network);
    }
    t.match(services['gateway-redis'].command, [
      'redis-server',
      '--maxmemory',
      /mb/,
      '--maxmemory-policy',
      'noeviction',
    ]);
    t.ok(page.text.includes(`cp floodgate/${file} docker-compose.override.yml`), 'the page copies the file');
  });
}

t.test('the page has the hop counts of the files', async (t) => {
  const counts = Object.values(RECIPES).map(hopCountOf);
  const shown = tableOf(page, 'Set-up', '`TRUSTED_PROXY_HOP_COUNT`', 'Proxies').map(([, count = '']) =>
    Number(codeIn(count)),
  );
  t.strictSame(shown, counts);
  t.strictSame(
    readdirSync(join(projectRoot, 'examples/formbricks')).filter((file) => file.endsWith('.yaml')).length,
    counts.length,
    'every example file has a row',
  );
});

t.test('Docker Compose: a flood of logins stops at the gateway', async (t) => {
  const formbricks = await startFormbricks(t, { hopCount: hopCountOf(RECIPES.compose), isUnlimited: true });
  const { origin } = await runRecipe(t, RECIPES.compose, formbricks);
  t.strictSame(await floodLogins([origin], 100), { '401': 5, 'own 429': 95 });
  t.equal(loginsAt(formbricks), 5);
  t.ok(isReachedOnlyBy('127.0.0.1', formbricks), 'Formbricks sees the address of the client');
});

t.test('Traefik: each entry point asks the gateway first, so that no router passes it', async (t) => {
  const formbricks = await startFormbricks(t, { hopCount: hopCountOf(RECIPES.traefik), isUnlimited: true });
  const { services, networks } = readRecipe(RECIPES.traefik.file);
  const [network] = networks?.floodgate?.ipam?.config ?? [];
  t.equal(services.gateway.environment.GATEWAY_TRUSTED_PROXIES, network?.subnet);
  t.strictSame(entryPointsOf(page), { web: ['floodgate@docker'], websecure: ['floodgate@docker'] });
  const labels = Object.keys(services.formbricks.labels ?? {});
  t.notOk(
    labels.some((label) => label.startsWith('traefik.http.routers.')),
    'Traefik drops a router that two containers define differently',
  );
  const { port, routers } = await startTraefikRecipe(t, formbricks, page);
  t.equal(routers.length, 5);
  for (const { name, middlewares } of routers) t.equal(middlewares[0], 'floodgate@docker', name);
  const site = `http://127.0.0.1:${port}`;
  for (const path of ['/api/v1/client/w/environment', '/api/v3/feedbackRecords', '/v1/feedback-records']) {
    const headers = { 'x-formbricks-client-ip': '192.0.2.1' };
    t.equal((await fetch(`${site}${path}`, { headers })).status, 400, `refused on ${path}`);
  }
});

t.test('each recipe closes the port that the one-click installation publishes', async (t) => {
  for (const { file } of Object.values(RECIPES))
    t.strictSame(readRecipe(file).services.formbricks.ports, [], file);
});

t.test('names all limits that remain with the application', async (t) => {
  const named = tableOf(page, 'Limit', 'Requests').flatMap(([cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
  t.strictSame([...named].sort(), Object.keys(limitTable).sort());
});
