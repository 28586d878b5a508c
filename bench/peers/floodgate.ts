/** Floodgate with all policies, headers and metrics. It counts fixed windows in Redis, for all processes together. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { ROOT } from '#bench/run/programs.ts';
import { freePort } from '#test/support/ports.ts';
import type { Started } from '#test/support/process.ts';
import { HIGH_LIMIT, type Peer, type Place } from './peer.ts';

export const IDENTITY_SECRET = 'bench-secret-of-no-worth-to-anybody';

/** The bench changes these keys of a policy file. */
export interface PolicyFile {
  policies: { name: string; limit?: number; overrides?: unknown }[];
  tests?: unknown;
}

/** Returns the shipped policy file without tests and overrides. @param change makes further changes */
export function policiesOf(root: string, change: (file: PolicyFile) => void): string {
  const file = parse(readFileSync(join(root, 'policies.yaml'), 'utf8')) as PolicyFile;
  delete file.tests;
  for (const policy of file.policies) delete policy.overrides;
  change(file);
  return stringify(file);
}

export function raiseLimits({ policies }: PolicyFile): void {
  for (const policy of policies) policy.limit = HIGH_LIMIT;
}

interface GatewayLaunch extends Place {
  readonly redisPort: number;
  /** Number of processes. Default: 1. */
  readonly workers?: number;
  /** Folder of the Floodgate version to start. Default: this version. */
  readonly root?: string;
  /** Text of the policy file. */
  readonly policies: string;
  /** Additional settings of the gateway. */
  readonly env?: Readonly<Record<string, string>>;
}

export function policyFile(port: number): string {
  return `policies-${port}.yaml`;
}

export async function startGateway(launch: GatewayLaunch): Promise<Started> {
  const { processes, port, upstreamPort, redisPort, policies } = launch;
  const { workers = 1, root = ROOT, env } = launch;
  const flags = ['--max-semi-space-size=16', '--max-old-space-size=1024'];
  return processes.node([...flags, join(root, 'gateway', 'main.ts')], /Gateway ready/, {
    cwd: root,
    env: {
      NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'node'),
      MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX ?? '1',
      GATEWAY_PORT: String(port),
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_ADMIN_PORT: String(await freePort()),
      GATEWAY_UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
      GATEWAY_REDIS_URL: `redis://127.0.0.1:${redisPort}`,
      GATEWAY_POLICIES: processes.file(policyFile(port), policies),
      GATEWAY_WORKERS: String(workers),
      GATEWAY_IDENTITY_SECRET: IDENTITY_SECRET,
      LOG_LEVEL: 'warn',
      ...env,
    },
  });
}

/** Creates a peer that is Floodgate with the shipped policies. If no request must be denied, all limits are raised. */
export function floodgateIn(root: string, name: string, label: string): Peer {
  return {
    ...{ name, label, needs: ['redis-server'], countsInRedis: true },
    start(launch) {
      const raise = launch.limit === HIGH_LIMIT ? raiseLimits : () => undefined;
      return startGateway({ ...launch, root, policies: policiesOf(root, raise) });
    },
  };
}

export const FLOODGATE = floodgateIn(ROOT, 'floodgate', 'Floodgate');
