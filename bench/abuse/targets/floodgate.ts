/** Our gateway with its default bounds. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority } from '#test/support/certificates.ts';
import { HIGH_LIMIT } from '../../scenarios.ts';
import { launchGateway, policiesOf } from '../../targets/gateway.ts';
import { missing, ROOT } from '../../tools.ts';
import { ATTACKER_ADDRESS } from '../addresses.ts';
import type { Limits } from '../scenario.ts';
import type { AbuseTarget } from './target.ts';

const LEAVERS = [
  {
    name: 'successes',
    route: 'GET /bench/slow',
    identifier: 'ip',
    limit: 100,
    window: '1m',
    count: 'success',
  },
  { name: 'in-flight', route: 'POST /bench/slow', identifier: 'ip', concurrency: 3 },
];

function policies(limits: Limits): string {
  return policiesOf(ROOT, (file) => {
    for (const policy of file.policies) {
      if (limits === 'raised' || limits === 'leavers') policy.limit = HIGH_LIMIT;
      if (limits === 'hourly') policy.window = '1h';
    }
    if (limits === 'leavers') file.policies.push(...LEAVERS);
  });
}

function tlsSettings(): Record<string, string> {
  const owner = { teardown: (clean: () => unknown) => process.once('exit', clean) };
  const { cert, key } = createAuthority(owner).issue('server', 'IP:127.0.0.1');
  return { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key, GATEWAY_HTTP2: '1' };
}

export const FLOODGATE: AbuseTarget = {
  name: 'floodgate',
  label: 'Floodgate',
  usesRedis: true,
  stopSignal: 'SIGKILL',
  missing: () => missing('redis-server', 'redis-server'),
  start({ processes, scenario, port, upstreamPort, redisPort }) {
    const file = join(processes.directory, `policies-${port}.yaml`);
    writeFileSync(file, policies(scenario.limits ?? 'raised'));
    return launchGateway(processes, {
      ...{ root: ROOT, port, upstreamPort, redisPort, policies: file, workers: 1 },
      env: {
        ...(scenario.trustsAttacker === true ? { GATEWAY_TRUSTED_PROXIES: `${ATTACKER_ADDRESS}/32` } : {}),
        ...(scenario.isTls === true ? tlsSettings() : {}),
      },
    });
  },
};
