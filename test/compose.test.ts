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
  readonly environment?: unknown;
  readonly env_file?: readonly (string | { readonly path: string; readonly required: boolean })[];
  readonly networks: readonly string[];
  readonly mem_limit: string;
  readonly logging: { readonly options: Readonly<Record<string, string>> };
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
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
}

const compose = parse(readFileSync(join(projectRoot, 'docker-compose.yml'), 'utf8'), {
  merge: true,
}) as Compose;
const dockerfile = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8');

/** What a service is told by the files of the repository: `NAME=value` lines. */
const given = (name: string): Record<string, string> => {
  const files = compose.services[name]?.env_file ?? [];
  return Object.fromEntries(
    files
      .filter((file) => typeof file === 'string')
      .flatMap((file) => readFileSync(join(projectRoot, file), 'utf8').split('\n'))
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line): [string, string] => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
};
const seconds = (duration: string | undefined): number => {
  const [, number] = /^(\d+)s$/.exec(duration ?? '') ?? [];
  return Number(number ?? 0);
};
const megabytes = (size: string | undefined): number => {
  const [, number, unit] = /^(\d+)(m|mb|g)$/.exec(size ?? '') ?? [];
  return Number(number ?? 0) * (unit === 'g' ? 1024 : 1);
};

t.test('gateway and api, each with a Redis of its own', async (t) => {
  t.strictSame(Object.keys(compose.services).sort(), ['api', 'app-redis', 'gateway', 'gateway-redis']);
  const gateway = given('gateway');
  const api = given('api');
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

t.test('every documented variable can be set, in a file that is the operator’s', async (t) => {
  for (const [name, variables, read] of [
    ['gateway', GATEWAY_VARIABLES, (env: Record<string, string>) => readGatewayConfig(env)],
    ['api', API_VARIABLES, (env: Record<string, string>) => readApiConfig(env, '/app')],
  ] as const) {
    const service = compose.services[name];
    // What stands under `environment` would win over the operator's file in silence.
    t.equal(service?.environment, undefined, `${name}: nothing is fixed`);
    t.strictSame(
      service?.env_file?.at(-1),
      { path: `${name}.env`, required: false },
      'read last, so it wins',
    );
    const own = given(name);
    t.ok(Object.keys(own).length > 3, name);
    const known = new Set<string>(variables.map((variable) => variable.name));
    for (const variable of Object.keys(own)) t.ok(known.has(variable), `${name}: ${variable}`);
    t.doesNotThrow(() => read(own), name);
    const ignored = readFileSync(join(projectRoot, '.gitignore'), 'utf8').split('\n');
    t.ok(ignored.includes(`/${name}.env`), 'and secrets in it are not committed');
  }
  t.match(readFileSync(join(projectRoot, '.dockerignore'), 'utf8'), '*.env', 'nor are they in the image');
});

t.test('each Redis is reached by its program only, and neither from outside', async (t) => {
  const shared = (one: string, other: string) =>
    compose.services[one]?.networks.filter((network) => compose.services[other]?.networks.includes(network));
  t.strictSame(shared('gateway', 'gateway-redis'), ['gateway-store']);
  t.strictSame(shared('api', 'app-redis'), ['app-store']);
  t.strictSame(shared('gateway', 'api'), ['front']);
  for (const [one, other] of [
    ['api', 'gateway-redis'],
    ['gateway', 'app-redis'],
    ['app-redis', 'gateway-redis'],
  ] as const) {
    t.strictSame(shared(one, other), [], `${one} does not reach ${other}`);
  }
  for (const name of ['gateway-store', 'app-store']) t.equal(compose.networks[name]?.internal, true, name);
  for (const { networks } of Object.values(compose.services)) {
    for (const network of networks) t.ok(network in compose.networks, network);
  }
});

t.test('memory and logs are bounded', async (t) => {
  for (const [name, { mem_limit: limit, logging, command }] of Object.entries(compose.services)) {
    t.ok(megabytes(limit) >= 256, `${name}: ${limit}`);
    t.match(logging.options, { 'max-size': /^\d+m$/, 'max-file': /^\d+$/ }, name);
    const maxmemory = command.indexOf('--maxmemory');
    if (maxmemory < 0) continue;
    t.ok(megabytes(limit) >= 2 * megabytes(command[maxmemory + 1]), `${name}: room for a snapshot`);
  }
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
  const file = given('gateway').GATEWAY_POLICIES ?? '';
  const [source = '', target = ''] = gateway?.volumes?.[0]?.split(':') ?? [];
  t.ok(file.startsWith(`${target}/`), `${file} is in ${target}`);
  t.ok(statSync(join(projectRoot, source)).isDirectory());
  t.ok(statSync(join(projectRoot, source, file.slice(target.length + 1))).isFile());
  t.equal(given('gateway').GATEWAY_WORKERS, 'auto', 'one process per core');
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
});

t.test('Docker waits longer than the programs take to stop', async (t) => {
  const drain = GATEWAY_VARIABLES.find(({ name }) => name === 'GATEWAY_DRAIN_TIMEOUT_MS')?.default;
  t.ok(seconds(compose.services.gateway?.stop_grace_period) > Number(drain) / 1000, 'gateway');
  const main = readFileSync(join(projectRoot, 'api/main.ts'), 'utf8');
  const stop = Number(/const STOP_MS = ([\d_]+);/.exec(main)?.[1]?.replaceAll('_', ''));
  t.ok(stop > 5_000, `${stop} ms`);
  t.ok(seconds(compose.services.api?.stop_grace_period) > stop / 1000, 'api');
  for (const name of ['gateway-redis', 'app-redis']) {
    t.ok(seconds(compose.services[name]?.stop_grace_period) >= 30, `${name} writes a snapshot`);
  }
});
