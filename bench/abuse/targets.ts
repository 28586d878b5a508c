/** The servers that are attacked. Each of them has bounds for one client address. */
import { policiesOf, raiseLimits, startGateway } from '#bench/peers/floodgate.ts';
import { startBoundedHaproxy } from '#bench/peers/haproxy.ts';
import { startBoundedNginx } from '#bench/peers/nginx-limit-req.ts';
import type { Place } from '#bench/peers/peer.ts';
import type { Started } from '#bench/run/processes.ts';
import { type Package, ROOT } from '#bench/run/programs.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { ATTACKER_ADDRESS } from './attacker.ts';
import type { AbuseScenario } from './scenario.ts';

interface TargetPlace extends Place {
  readonly redisPort: number;
  readonly settings: Readonly<Record<string, string>>;
}

export interface Target {
  readonly name: string;
  readonly needs: Package;
  start(place: TargetPlace, scenario: AbuseScenario): Promise<Started>;
}

function tlsSettings(): Record<string, string> {
  const owner = { teardown: (clean: () => unknown) => process.once('exit', clean) };
  const { cert, key } = createAuthority(owner).issue('server', 'IP:127.0.0.1');
  return { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key, GATEWAY_HTTP2: '1' };
}

/** Floodgate with its default bounds. */
export const FLOODGATE: Target = {
  name: 'floodgate',
  needs: 'redis-server',
  start: (place, { policies = raiseLimits, trustsAttacker, isTls }) =>
    startGateway({
      ...place,
      policies: policiesOf(ROOT, policies),
      env: {
        ...(trustsAttacker === true ? { GATEWAY_TRUSTED_PROXIES: `${ATTACKER_ADDRESS}/32` } : {}),
        ...(isTls === true ? tlsSettings() : {}),
        ...place.settings,
      },
    }),
};

function peer(name: 'nginx' | 'haproxy', start: typeof startBoundedNginx): Target {
  return {
    ...{ name, needs: name },
    start: (place, { trustsAttacker }) =>
      start({ ...place, trusted: trustsAttacker === true ? ATTACKER_ADDRESS : null }),
  };
}

export const TARGETS: readonly Target[] = [
  ...[FLOODGATE, peer('nginx', startBoundedNginx), peer('haproxy', startBoundedHaproxy)],
];
