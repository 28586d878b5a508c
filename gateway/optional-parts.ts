/** Parts that are loaded only if they are configured, to save start time and memory. */
import type { Logger } from 'pino';
import type { Clock } from '#shared/clock.ts';
import type { GatewayConfig, GatewaySecrets } from './config.ts';
import type { DecisionListeners, openDecisionListeners } from './decision-listener/listeners.ts';
import type { DecisionSettings } from './decision-listener/settings.ts';
import type { Certificate } from './listen/tls/certificate.ts';
import type { Tracing } from './observe/tracing/tracing.ts';
import type { Addresses } from './operate/decisions/addresses.ts';
import type { DecisionStore } from './operate/decisions/decision-record.ts';
import { MemoryDecisions } from './operate/decisions/memory-decisions.ts';
import type { StoreAccess } from './store/access.ts';
import { loadTestedPolicies } from './workbench/rehearsal/policy-tests.ts';

/** Settings, and what all parts need. */
export interface CommonParts {
  readonly config: GatewayConfig;
  readonly secrets: GatewaySecrets;
  readonly clock: Clock;
  readonly wallClock: Clock;
  readonly replica: string;
  readonly log: Logger;
}

/** The loader throws PolicyFileError; with a decision listener also for policies that it cannot apply. */
export async function policyLoader(settings: DecisionSettings | null): Promise<typeof loadTestedPolicies> {
  if (settings === null) return loadTestedPolicies;
  const { loadPredictable } = await import('./decision-listener/predictable-policies.ts');
  return loadPredictable;
}

export async function openAddresses(
  { showAddressesMs }: GatewayConfig,
  clock: Clock,
): Promise<Addresses | null> {
  if (showAddressesMs === null) return null;
  const { Addresses } = await import('./operate/decisions/addresses.ts');
  return new Addresses(showAddressesMs, clock);
}

export async function openDecisionStore(store: StoreAccess | null, wallClock: Clock): Promise<DecisionStore> {
  if (store === null) return new MemoryDecisions(wallClock);
  const { RedisDecisions } = await import('./operate/decisions/redis-decisions.ts');
  return new RedisDecisions(store);
}

export async function openListeners(
  settings: DecisionSettings | null,
  parts: Parameters<typeof openDecisionListeners>[1],
  log: Logger,
): Promise<DecisionListeners | null> {
  if (settings === null) return null;
  const { openDecisionListeners } = await import('./decision-listener/listeners.ts');
  return openDecisionListeners(settings, parts, log);
}

export async function openCertificate(parts: CommonParts): Promise<Certificate | null> {
  const { config, secrets, clock, wallClock, log } = parts;
  if (config.tls === null || secrets.keyPair === null) return null;
  const { Certificate } = await import('./listen/tls/certificate.ts');
  return new Certificate({
    files: config.tls,
    pair: secrets.keyPair,
    isHttp2: config.isHttp2,
    handshakesPerClient: config.handshakesPerClient,
    clock,
    wallClock,
    log,
  });
}

export async function openTracing({ config, clock, replica, log }: CommonParts): Promise<Tracing | null> {
  if (config.tracing === null) return null;
  const { OpenTelemetry } = await import('./observe/tracing/open-telemetry.ts');
  return new OpenTelemetry({
    settings: config.tracing,
    clock,
    replica,
    upstream: config.upstream,
    warn: (fields, message) => log.warn(fields, message),
  });
}
