/** No Docker engine runs the tests, so what can be checked of the Compose file without one is checked here. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { variables as API_VARIABLES, readConfig as readApiConfig } from '#api/config.ts';
import { GATEWAY_VARIABLES, readConfig as readGatewayConfig } from '#gateway/config.ts';
import { projectRoot } from '#test/support/process.ts';

interface Service {
  readonly build?: string;
  readonly image?: string;
  readonly command: readonly string[];
  readonly user: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly healthcheck: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly stop_grace_period?: string;
  readonly read_only: boolean;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const compose = parse(readFileSync(join(projectRoot, 'docker-compose.yml'), 'utf8'), {
  merge: true,
}) as Compose;
const dockerfile = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8');

/** `${NAME:-default}` as Compose resolves it with nothing set. */
const resolved = (environment: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(environment).map(([key, value]) => [key, value.replace(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1')]),
  );

t.test('gateway and api, each with a Redis of its own', async (t) => {
  t.strictSame(Object.keys(compose.services).sort(), ['api', 'app-redis', 'gateway', 'gateway-redis']);
  const gateway = resolved(compose.services.gateway?.environment);
  const api = resolved(compose.services.api?.environment);
  t.equal(gateway.GATEWAY_REDIS_URL, 'redis://gateway-redis:6379');
  t.equal(api.REDIS_URL, 'redis://app-redis:6379');
  t.match(compose.services['gateway-redis']?.command, [
    'redis-server',
    '--maxmemory',
    /mb/,
    '--maxmemory-policy',
    'noeviction',
  ]);
});

t.test('every variable is one that the programs read, with a value that they take', async (t) => {
  const known = new Set<string>([...GATEWAY_VARIABLES, ...API_VARIABLES].map(({ name }) => name));
  for (const service of Object.values(compose.services)) {
    for (const name of Object.keys(service.environment ?? {})) t.ok(known.has(name), name);
  }
  t.doesNotThrow(() => readGatewayConfig(resolved(compose.services.gateway?.environment)));
  t.doesNotThrow(() => readApiConfig(resolved(compose.services.api?.environment), '/app'));
});

t.test('health checks, no root, no writable root file system, named volumes', async (t) => {
  for (const [name, service] of Object.entries(compose.services)) {
    t.equal(service.healthcheck.test[0], 'CMD', `${name} has a health check`);
    t.ok(service.user !== undefined && service.user !== 'root', `${name} is not root`);
    t.equal(service.read_only, true, `${name} is read only`);
    for (const volume of service.volumes ?? []) {
      const [source = ''] = volume.split(':');
      t.ok(source in compose.volumes || source === './config', `${name}: ${source} is a named volume`);
    }
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      t.ok(other in compose.services, `${name} depends on ${other}`);
      t.equal(condition, 'service_healthy');
    }
  }
  t.strictSame(
    Object.entries(compose.services)
      .filter(([, { ports }]) => ports)
      .map(([name]) => name),
    ['gateway'],
    'only the gateway is reachable',
  );
});

t.test('the policy file is mounted as a folder, so that editors that rename are seen', async (t) => {
  const gateway = compose.services.gateway;
  const file = gateway?.environment?.GATEWAY_POLICIES ?? '';
  const [source = '', target = ''] = gateway?.volumes?.[0]?.split(':') ?? [];
  t.ok(file.startsWith(`${target}/`), `${file} is in ${target}`);
  t.ok(statSync(join(projectRoot, source)).isDirectory());
  t.ok(statSync(join(projectRoot, source, file.slice(target.length + 1))).isFile());
  t.equal(gateway?.environment?.GATEWAY_WORKERS, `\${GATEWAY_WORKERS:-auto}`, 'one process per core');
});

t.test('what the containers run is in the image, on the Node that the project runs on', async (t) => {
  const { devDependencies } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  const major = /\d+/.exec(devDependencies.node)?.[0];
  t.match(dockerfile, `FROM node:${major}-slim`);
  for (const name of ['gateway', 'api']) {
    const program = compose.services[name]?.command.at(-1) ?? '';
    t.ok(readFileSync(join(projectRoot, program), 'utf8').length > 0, program);
    t.match(dockerfile, `COPY ${program.split('/')[0]} ./`);
  }
  t.match(dockerfile, 'COPY shared ./shared', 'and what both import');
  const grace = Number.parseInt(compose.services.gateway?.stop_grace_period ?? '0', 10);
  const drain =
    Number(GATEWAY_VARIABLES.find(({ name }) => name === 'GATEWAY_DRAIN_TIMEOUT_MS')?.default) / 1000;
  t.ok(grace > drain, `Docker waits ${grace} s, longer than the drain of ${drain} s`);
});
