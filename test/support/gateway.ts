/** Starts a gateway in this process on a free port, in front of an upstream of the test. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { pino } from 'pino';
import { type Gateway, startGateway } from '#gateway/app.ts';
import { type GatewayConfig, type GatewaySettings, readConfig } from '#gateway/config.ts';
import { readPolicyFile } from '#gateway/policy/policy-file.ts';
import type { Clock } from '#shared/clock.ts';
import { listen } from './listen.ts';
import { patiently } from './store-budget.ts';
import { until } from './until.ts';

/** The part of tap's `t` that helpers use: clean-ups run when the test ends, the last one first. */
export interface Owner {
  teardown(clean: () => unknown): unknown;
}

export interface TestUpstream {
  readonly server: Server;
  readonly port: number;
  readonly origin: string;
}

/** A real HTTP server on loopback. Without a listener it replies 200 with the request as JSON. */
export async function startUpstream(owner: Owner, listener: RequestListener = echo): Promise<TestUpstream> {
  const server = createServer(listener);
  const port = await listen(owner, server);
  return { server, port, origin: `http://127.0.0.1:${port}` };
}

/** Gives each gateway of this process a name of its own. */
let replicas = 0;

/** The request as the upstream sees it: `{ method, url, headers: [name, value, …], body }` */
const echo: RequestListener = (req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    const { method, url, rawHeaders } = req;
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ method, url, headers: rawHeaders, body: Buffer.concat(chunks).toString() }));
  });
};

/**
 * Chooses the parser for tests that do not name one: `TEST_OWN_PARSER=0 npm test -- FILE` runs them with node:http alone.
 */
export const OWN_PARSER: Readonly<Record<string, string>> =
  process.env.TEST_OWN_PARSER === undefined ? {} : { GATEWAY_OWN_PARSER: process.env.TEST_OWN_PARSER };

export interface TestGateway {
  readonly gateway: Gateway;
  readonly config: GatewayConfig;
  readonly settings: GatewaySettings;
  readonly port: number;
  readonly origin: string;
  /** Log lines so far, parsed. */
  readonly log: readonly Record<string, unknown>[];
  /** Resolves once a line of the log matches, as JSON. */
  logged(pattern: RegExp): Promise<void>;
  /** Returns the value of the first metric with this name and these labels; -1 if there is none. */
  sample(name: string, labels?: Readonly<Record<string, string>>): number;
}

export interface TestGatewayOptions {
  /** The application or its origin; by default one that replies with the request as JSON. */
  readonly upstream?: string | { readonly origin: string };
  /** Text of the policy file; by default the project's own policies.yaml. */
  readonly policies?: string;
  /** Further environment variables, such as { GATEWAY_REDIS_URL: '…' }. */
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly wallClock?: Clock;
}

/** Settings of a gateway that believes what X-Forwarded-For says, as behind a proxy on this machine. */
export const BEHIND_PROXY = { GATEWAY_TRUSTED_PROXIES: 'loopback' };

/** Stands for a random source, and returns all numbers below the given one in turn. */
export function numbersInTurn(): (end: number) => number {
  let turn = 0;
  return (end) => turn++ % end;
}

export async function startTestGateway(owner: Owner, options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { upstream = await startUpstream(owner), policies } = options;
  const settings = readConfig(
    patiently({
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_PORT: '0',
      GATEWAY_UPSTREAM: typeof upstream === 'string' ? upstream : upstream.origin,
      GATEWAY_DRAIN_TIMEOUT_MS: '1000',
      ...OWN_PARSER,
      ...options.env,
    }),
  );
  const log: Record<string, unknown>[] = [];
  const gateway = await startGateway({
    settings,
    clock: options.clock ?? (() => performance.timeOrigin + performance.now()),
    wallClock: options.wallClock ?? Date.now,
    newSalt: () => 'salt of the tests',
    randomInt: numbersInTurn(),
    // The collector goes through all objects for each 64 MB of tables, which is one gateway with the default.
    rememberedMax: 16_384,
    replica: `test:${process.pid}:${++replicas}`,
    log: pino({ base: null }, { write: (line: string) => void log.push(JSON.parse(line)) }),
    readPolicyFile: policies === undefined ? readPolicyFile : () => policies,
  });
  owner.teardown(() => gateway.close());
  const { config } = settings;
  const { port } = gateway;
  const sample: TestGateway['sample'] = (name, labels = {}) =>
    gateway
      .samples()
      .find(
        (one) =>
          one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value),
      )?.value ?? -1;
  const logged = (pattern: RegExp): Promise<void> =>
    until(() => log.some((line) => pattern.test(JSON.stringify(line))), String(pattern));
  return { gateway, config, settings, port, origin: `http://127.0.0.1:${port}`, log, logged, sample };
}

/** Writes a policy file with these policies, and with the identifiers and exclusions of the project's own file. */
export function policyFile(...rows: readonly string[]): string {
  return [
    'version: 1',
    'identifiers:',
    '  ip: { source: client-address, ipv6Prefix: 64 }',
    '  api-key: { source: [{ header: x-api-key }, { bearer: fbk_ }] }',
    'exclude: [OPTIONS *, GET /api/v2/health, GET /api/v1/client/og]',
    rows.length === 0 ? 'policies: []' : 'policies:',
    ...rows.map((row) => `  - { ${row} }`),
  ].join('\n');
}
