/** The data plane without a process around it, with bounds and times that a test chooses, and access to its parts. */

import { Bans } from '#gateway/bans/bans.ts';
import type { BoundName } from '#gateway/bounds/bound-names.ts';
import { type BoundLimits, type Bounds, createBounds } from '#gateway/bounds/bounds.ts';
import { Clients } from '#gateway/bounds/clients.ts';
import { readConfig } from '#gateway/config.ts';
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import type { EntranceSlots } from '#gateway/listen/entrance.ts';
import { type DecisionServer, PublicServer } from '#gateway/listen/server.ts';
import { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { rankOf } from '#gateway/observers/groups.ts';
import { observersOf } from '#gateway/observers/observers.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { Upstream, type UpstreamOptions } from '#gateway/proxy/upstream.ts';
import { Decisions } from '#gateway/refusals/decisions.ts';
import { MemoryDecisions } from '#gateway/refusals/memory-decisions.ts';
import { Enforcement } from '#gateway/request/enforcement.ts';
import { Refusals } from '#gateway/request/refuse.ts';
import type { StoryParts } from '#gateway/request/story.ts';
import type { Millis } from '#shared/clock.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { OWN_PARSER, type Owner, policyFile, startUpstream } from '#test/support/gateway.ts';
import { memoryLimiter } from '#test/support/spend.ts';

export interface BareServer {
  readonly port: number;
  readonly upstream: Upstream;
  readonly bounds: Bounds;
  readonly clients: Clients;
  readonly warnings: readonly Record<string, unknown>[];
  drain(deadlineMs: Millis): Promise<void>;
}

export interface BareServerOptions
  extends Partial<Omit<UpstreamOptions, 'bounds' | 'clock' | 'origin'>>,
    Partial<EntranceSlots> {
  /** By default that of an application that replies with the request as JSON. */
  readonly origin?: string;
  readonly bounds?: Readonly<Partial<Record<BoundName, Partial<BoundLimits>>>>;
  /** Text of the policy file; by default it has no policies. */
  readonly policies?: string;
  readonly trustedProxies?: string;
  readonly checkMs?: number;
  readonly penaltyMs?: number;
  readonly decisionServer?: (parts: StoryParts) => DecisionServer;
}

export async function startBareServer(owner: Owner, options: BareServerOptions = {}): Promise<BareServer> {
  const {
    origin = (await startUpstream(owner)).origin,
    bounds: changes = {},
    policies = policyFile(),
    trustedProxies = 'none',
    checkMs,
    penaltyMs,
    handshakes = null,
    introductions = null,
    decisionServer,
    ...upstreamOptions
  } = options;
  const clock = (): number => performance.now();
  const { config } = readConfig(OWN_PARSER);
  const settings = { ...config.bounds };
  for (const [name, limits] of Object.entries(changes)) {
    const bound = name as BoundName;
    settings[bound] = { ...settings[bound], ...limits };
  }
  const warnings: Record<string, unknown>[] = [];
  const log = { warn: (fields: object) => void warnings.push({ ...fields }), info: () => undefined };
  const upstream = new Upstream({
    timeoutMs: 20_000,
    collectYoung: () => undefined,
    openProtection: null,
    ...upstreamOptions,
    origin,
    clock,
    bounds: createBounds(settings, { clock, log }),
    log,
  });
  const limiter = memoryLimiter({ clock });
  const trust = parseTrustedProxies(trustedProxies);
  const metrics = new Metrics();
  const heard = { clock, metrics, limiter, trust, offenders: null, addresses: null, log };
  const events = observersOf(heard);
  const enforcement = new Enforcement(loadPolicies(policies, 'test.yaml'), 'salt', {
    clock,
    wallClock: Date.now,
    randomInt: () => 0,
    limiter,
    bans: new Bans(),
    trust,
    headerFilter: new HeaderFilter(),
    onUntrustedChain: () => undefined,
  });
  const clients = new Clients();
  const decisions = new Decisions({
    store: new MemoryDecisions(Date.now),
    isStoreUsed: () => false,
    wallClock: Date.now,
    policyVersion: () => '0',
    replica: 'test',
  });
  const server = new PublicServer({
    hasOwnParser: config.hasOwnParser,
    enforcement,
    events,
    metrics,
    addresses: null,
    rankOf,
    upstream,
    clients,
    decisions,
    accessLog: null,
    clock,
    introductions,
    handshakes,
    ...(decisionServer === undefined
      ? {}
      : {
          decisionServer: decisionServer({
            enforcement,
            events,
            refusals: new Refusals({ enforcement, events, decisions, addresses: null }),
          }),
        }),
    ...(checkMs === undefined ? {} : { checkMs }),
    ...(penaltyMs === undefined ? {} : { penaltyMs }),
  });
  owner.teardown(async () => {
    await server.drain(0);
    upstream.close();
  });
  const port = await server.listen({ host: '127.0.0.1', port: 0, reusePort: false });
  const drain = (deadlineMs: Millis): Promise<void> => server.drain(deadlineMs);
  return { port, upstream, bounds: upstream.bounds, clients, warnings, drain };
}
