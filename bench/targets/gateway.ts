/** Our gateway, everything on: all policies, identities, headers, metrics. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { freePort } from '#test/support/ports.ts';
import type { Processes, Started } from '../processes.ts';
import { HIGH_LIMIT, type PeerName } from '../scenarios.ts';
import { missing, NODE, ROOT } from '../tools.ts';
import type { Launch, Peer } from './target.ts';

interface PolicyFile {
  exclude: string[];
  policies: {
    name: string;
    route: string;
    identifier: string;
    limit?: number;
    window?: string;
    count?: string;
    concurrency?: number;
    overrides?: unknown;
  }[];
  tests?: unknown;
}

/** The shipped table without its tests and overrides, changed as asked. */
export function policiesOf(root: string, change: (file: PolicyFile) => void): string {
  const file = parse(readFileSync(join(root, 'policies.yaml'), 'utf8')) as PolicyFile;
  delete file.tests;
  for (const policy of file.policies) delete policy.overrides;
  change(file);
  return stringify(file);
}

/** Where all shall pass, every limit is raised and nothing else changed. */
function policiesFor(launch: Launch, root: string, bare: boolean): string {
  return policiesOf(root, (file) => {
    if (bare) {
      file.exclude = [];
      file.policies = [{ name: 'unused', route: 'GET /never', identifier: 'ip', limit: 1, window: '1m' }];
    } else if (launch.scenario.expect === 'allowed') {
      for (const policy of file.policies) policy.limit = HIGH_LIMIT;
    }
  });
}

export function startGateway(
  launch: Launch,
  root: string,
  options: { readonly bare?: boolean; readonly nodeFlags?: readonly string[] } = {},
): Promise<Started> {
  const { processes, port, upstreamPort, redisPort, directory, scenario } = launch;
  const policies = join(directory, `policies-${port}.yaml`);
  writeFileSync(policies, policiesFor(launch, root, options.bare ?? false));
  return launchGateway(processes, {
    ...{ root, port, upstreamPort, redisPort, policies, workers: scenario.workers },
    nodeFlags: options.nodeFlags ?? [],
  });
}

export interface GatewayLaunch {
  readonly root: string;
  readonly port: number;
  readonly upstreamPort: number;
  readonly redisPort: number;
  /** The policy file. */
  readonly policies: string;
  readonly workers: number;
  readonly nodeFlags?: readonly string[];
  /** Further settings. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function launchGateway(processes: Processes, launch: GatewayLaunch): Promise<Started> {
  const { root, port, upstreamPort, redisPort, policies, workers } = launch;
  return processes.start(
    'the gateway',
    NODE,
    [
      '--max-semi-space-size=16',
      '--max-old-space-size=1024',
      ...(launch.nodeFlags ?? []),
      join(root, 'gateway', 'main.ts'),
    ],
    {
      port,
      readyText: 'Gateway ready',
      cwd: root,
      env: {
        NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'node'),
        MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX ?? '1',
        GATEWAY_PORT: String(port),
        GATEWAY_HOST: '127.0.0.1',
        GATEWAY_ADMIN_PORT: String(await freePort()),
        GATEWAY_UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
        GATEWAY_REDIS_URL: `redis://127.0.0.1:${redisPort}`,
        GATEWAY_POLICIES: policies,
        GATEWAY_WORKERS: String(workers),
        GATEWAY_IDENTITY_SECRET: 'bench-secret-of-no-worth-to-anybody',
        LOG_LEVEL: 'warn',
        ...launch.env,
      },
    },
  );
}

function gateway(name: PeerName, label: string, bare: boolean): Peer {
  return {
    name,
    label,
    usesRedis: true,
    countsInRedis: !bare,
    missing: () => missing('redis-server', 'redis-server'),
    start: (launch) => startGateway(launch, ROOT, { bare }),
  };
}

export const FLOODGATE = gateway('floodgate', 'Floodgate', false);
export const FLOODGATE_BARE = gateway('floodgate-bare', 'Floodgate without policies', true);
