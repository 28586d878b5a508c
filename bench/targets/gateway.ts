/** Our gateway, everything on: all policies, identities, headers, metrics. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { freePort, type Started } from '../processes.ts';
import { HIGH_LIMIT, type PeerName } from '../scenarios.ts';
import { missing, NODE, ROOT } from '../tools.ts';
import type { Launch, Peer } from './target.ts';

interface PolicyFile {
  policies: { limit: number; overrides?: unknown }[];
  tests?: unknown;
}

/** The shipped table; where all shall pass, with every limit raised and nothing else changed. */
function policiesFor(launch: Launch, root: string, bare: boolean): string {
  const file = parse(readFileSync(join(root, 'policies.yaml'), 'utf8')) as PolicyFile;
  delete file.tests;
  if (bare) {
    return stringify({
      ...file,
      exclude: [],
      policies: [{ name: 'unused', route: 'GET /never', identifier: 'ip', limit: 1, window: '1m' }],
    });
  }
  for (const policy of file.policies) {
    delete policy.overrides;
    if (launch.scenario.expect === 'allowed') policy.limit = HIGH_LIMIT;
  }
  return stringify(file);
}

export async function startGateway(
  launch: Launch,
  root: string,
  options: { readonly bare?: boolean; readonly nodeFlags?: readonly string[] } = {},
): Promise<Started> {
  const { processes, port, upstreamPort, redisPort, directory, scenario } = launch;
  const policies = join(directory, `policies-${port}.yaml`);
  writeFileSync(policies, policiesFor(launch, root, options.bare ?? false));
  return processes.start(
    'the gateway',
    NODE,
    ['--max-semi-space-size=16', ...(options.nodeFlags ?? []), join(root, 'gateway', 'main.ts')],
    {
      port,
      readyText: 'Gateway ready',
      cwd: root,
      env: {
        NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'node'),
        GATEWAY_PORT: String(port),
        GATEWAY_HOST: '127.0.0.1',
        GATEWAY_ADMIN_PORT: String(await freePort()),
        GATEWAY_UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
        GATEWAY_REDIS_URL: `redis://127.0.0.1:${redisPort}`,
        GATEWAY_POLICIES: policies,
        GATEWAY_WORKERS: String(scenario.workers),
        GATEWAY_IDENTITY_SECRET: 'bench-secret-of-no-worth-to-anybody',
        LOG_LEVEL: 'warn',
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
