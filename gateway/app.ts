/** Builds a running gateway from its parts, in dependency order. */
import type { Logger } from 'pino';
import type { Clock, Millis } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { createBounds } from './bounds/bounds.ts';
import { Clients } from './bounds/clients.ts';
import type { GatewayConfig, GatewaySecrets } from './config.ts';
import type { DecisionListeners, openDecisionListeners } from './decision-listener/listeners.ts';
import type { DecisionSettings } from './decision-listener/settings.ts';
import { HeaderFilter } from './http/header-filter.ts';
import { FrameShare } from './listen/http2/frame-share.ts';
import { Introductions } from './listen/proxy-protocol/introductions.ts';
import { PublicServer } from './listen/server.ts';
import type { Certificate } from './listen/tls/certificate.ts';
import { AccessLog } from './observe/access-log/access-log.ts';
import { Metrics, type Sample } from './observe/metrics/metrics.ts';
import type { Ranked } from './observe/metrics/ranking.ts';
import type { Second } from './observe/metrics/seconds.ts';
import { partSamples } from './observe/part-samples.ts';
import type { Tracing } from './observe/tracing/tracing.ts';
import type { Control, ControlChange } from './operate/control/control.ts';
import { Offenders } from './operate/control/offenders.ts';
import { openCounters } from './operate/control/open-counters.ts';
import { shadowed } from './operate/control/shadows.ts';
import { Addresses } from './operate/decisions/addresses.ts';
import type { DecisionRecord, DecisionStore } from './operate/decisions/decision-record.ts';
import { Decisions } from './operate/decisions/decisions.ts';
import { MemoryDecisions } from './operate/decisions/memory-decisions.ts';
import { countersOf } from './policy/counter.ts';
import type { PolicySet } from './policy/policy-set.ts';
import { FileWatch, loadWatched } from './policy/watched-file.ts';
import { youngCollector } from './process/collect-young.ts';
import { Upstream } from './proxy/upstream.ts';
import { Enforcement } from './request/enforcement.ts';
import type { StoreAccess } from './store/access.ts';
import { loadTestedPolicies } from './workbench/rehearsal/policy-tests.ts';

interface GatewayParts {
  readonly config: GatewayConfig;
  readonly secrets: GatewaySecrets;
  readonly clock: Clock;
  readonly wallClock: Clock;
  /** Returns a new secret with each call. It becomes the salt if none is configured or stored. */
  readonly newSalt: () => string;
  readonly replica: string;
  readonly log: Logger;
  readonly readPolicyFile: (file: string) => string;
  readonly reusePort: boolean;
}

export interface Gateway {
  readonly port: number;
  readonly policies: number;
  /** The policies as loaded from the file, without the shadow modes that operators have set. */
  policySet(): PolicySet;
  policyText(): string;
  /** Contents of the files that the policy file refers to, by name. */
  referencedTexts(): ReadonlyMap<string, string>;
  /** Why the current content of the policy file is not in use. null if it is in use. */
  policyRefusal(): string | null;
  /** Closing the gateway also closes it. */
  readonly control: Control;
  /** Applies a change that the supervisor has already written to the store. */
  applyChange(change: ControlChange): Promise<void>;
  /** Clients that were denied most often in the last 30 to 60 minutes, by digest. See Metrics. */
  limited(): readonly Ranked[];
  /** Paths that were requested most often in that time. */
  paths(): readonly Ranked[];
  /** Takes the counts of past seconds out of the gateway. */
  takeSeconds(): readonly Second[];
  /** Addresses of refused clients, while operators may see them. */
  readonly addresses: Addresses;
  /** Number of replicas that the last report counted as alive. 1 without a store. */
  replicas(): number;
  samples(): Sample[];
  /** Whether the gateway accepts requests. false while it drains. */
  ready(): boolean;
  storeAvailable(): boolean;
  /** Time at which the gateway began to decide without the store. null if the store is available. */
  storeAwaySince(): Millis | null;
  /** @throws StoreFault if the store does not answer */
  findDecision(id: string): Promise<DecisionRecord | null>;
  /**
   * Lists refusals, newest first. See DecisionStore for the parameters.
   *
   * @throws StoreFault if the store does not answer
   */
  listDecisions(before: string | null, count: number): Promise<readonly DecisionRecord[]>;
  /** Tells the other gateways which clients this one denied most. See DecisionStore. */
  exchangeDenied(own: readonly Ranked[]): Promise<readonly (readonly Ranked[])[]>;
  reload(): void;
  /** Lets requests in flight finish, then closes everything. */
  close(): Promise<void>;
}

/** Maximum numbers of counters and of proven credentials in memory without a store. */
const COUNTERS_MAX = 1_048_576;
const CREDENTIALS_MAX = 131_072;

export async function startGateway(parts: GatewayParts): Promise<Gateway> {
  const { config, secrets, clock, log } = parts;
  const metrics = new Metrics();
  const text = parts.readPolicyFile(config.policiesFile);
  const { decisionListener } = config;
  const load = await policyLoader(decisionListener);
  const { loaded: policies, inUse } = loadWatched(text, config.policiesFile, load);

  const { wallClock, replica } = parts;
  let loaded = policies;
  const use = (): void => enforcement.use(shadowed(loaded, shadows.endsAt));
  const { limiter, guarded, control, bans, shadows, changeFeed, salt } = await openCounters({
    store: secrets.store,
    identitySecret: secrets.identitySecret,
    clock,
    log,
    replica,
    newSalt: parts.newSalt,
    countersMax: COUNTERS_MAX,
    credentialsMax: CREDENTIALS_MAX,
    onSalt: (shared) => {
      enforcement.useSalt(shared);
      decisions.useSalt(shared);
    },
    onShadows: use,
    counters: () => countersOf(enforcement.policies),
  });
  if (guarded === null)
    log.warn(
      'no GATEWAY_REDIS_URL: counters are in the memory of this process; a restart loses them, and replicas do not share them',
    );

  const upstream = new Upstream({
    origin: config.upstream,
    timeoutMs: config.upstreamTimeoutMs,
    keepAliveMs: config.upstreamKeepAliveMs,
    unreadTimeoutMs: config.unreadTimeoutMs,
    replyBufferBytes: config.replyBufferBytes,
    clock,
    bounds: createBounds(config.bounds, { clock, log }),
    collectYoung: youngCollector(),
    onOverload: onceAMinute(clock, (limit: number) =>
      log.warn({ limit }, 'the application replies slowly; requests beyond the limit of protect are refused'),
    ),
  });
  upstream.protect(policies.protect);
  const offenders = new Offenders({
    control,
    onBan: (row, mode) => metrics.banned(row, mode),
    clock,
    log,
  });
  const addresses = new Addresses(config.showAddressesMs, clock);
  const enforcement = new Enforcement(policies, salt, {
    addresses,
    clock,
    wallClock,
    limiter,
    bans,
    offenders,
    metrics,
    trust: config.trust,
    headerFilter: new HeaderFilter(config.passedHeaders),
    onUnitsMissing: onceAMinute(clock, (policy: string, header: string) =>
      log.warn(
        { policy, header },
        'a reply does not report its units, so the reserve stays charged: let the application send this header once, with a whole number, on every reply',
      ),
    ),
    onNothingMatched: (paths) =>
      log.warn(
        { file: config.policiesFile, paths },
        'no policy matched any request of the last minute, so nothing is limited; is the policy file for this application? "npx floodgate init" writes one to begin with',
      ),
    onUntrustedChain: onceAMinute(clock, () =>
      log.warn(
        'a trusted proxy sent an X-Forwarded-For chain that cannot be read; such requests share one bucket',
      ),
    ),
  });
  if (policies.planHeader !== null && config.trust.kind === 'none')
    log.warn('the policy file has plans, but no proxy is trusted to name them; set GATEWAY_TRUSTED_PROXIES');
  const decisions = new Decisions({
    store: await openDecisionStore(secrets.store, wallClock),
    isStoreUsed: () => guarded?.stats().available ?? false,
    wallClock,
    salt,
    policyVersion: () => enforcement.policies.version,
    replica,
  });
  const accessLog =
    config.accessLog === null
      ? null
      : new AccessLog({ ...config.accessLog, clock, warn: (fields, message) => log.warn(fields, message) });
  const certificate = await openCertificate(parts);
  const frames = config.isHttp2
    ? new FrameShare({
        onFlood: onceAMinute(clock, () =>
          log.warn(
            'a client sends too many HTTP/2 frames besides requests; its connections are cut for a second',
          ),
        ),
      })
    : null;
  const introductions = config.proxyProtocol ? new Introductions(config.trust) : null;
  const tracing = await openTracing(parts);
  const serverParts = {
    enforcement,
    upstream,
    clients: new Clients(config.networkPrefix),
    decisions,
    accessLog,
    clock,
  };
  const server = new PublicServer({
    ...serverParts,
    tracing,
    introductions,
    handshakes: certificate?.handshakes ?? null,
    frames,
    hasOwnParser: config.hasOwnParser,
  });
  const decisionListeners = await openListeners(decisionListener, serverParts, log);
  const servers = decisionListeners?.http == null ? [server] : [server, decisionListeners.http];
  const watch = new FileWatch(inUse, {
    file: config.policiesFile,
    read: parts.readPolicyFile,
    load,
    clock,
    onLoaded: (set) => {
      metrics.reloads++;
      loaded = set;
      use();
      upstream.protect(set.protect);
      log.info({ file: set.file, policies: set.policies.length }, 'the edited policy file is in use');
    },
    onRefused: (error) => {
      metrics.reloadFailures++;
      log.error({ reason: error.message }, 'the edited policy file is refused; the old policies stay in use');
    },
  });

  const closeStores = async (): Promise<void> => {
    watch.stop();
    certificate?.stop();
    changeFeed?.stop();
    shadows.close();
    offenders.close();
    control.close();
    addresses.close();
    await upstream.close();
    await Promise.all([limiter.close(), decisions.close(), accessLog?.close(), tracing?.close()]);
  };
  // Load bans before accepting requests. Otherwise a replaced worker would first admit banned clients.
  await changeFeed?.start();
  const drain = async (deadlineMs: Millis): Promise<void> => {
    await Promise.all([server.drain(deadlineMs), decisionListeners?.drain(deadlineMs)]);
  };
  const { reusePort } = parts;
  const listen = async (): Promise<number> => {
    const port = await server.listen({ host: config.host, port: config.port, reusePort });
    await decisionListeners?.listen(reusePort);
    return port;
  };
  const port = await listen().catch(async (error: Error) => {
    await drain(0);
    await closeStores();
    throw error;
  });
  watch.start();
  certificate?.start();

  return {
    port,
    policies: policies.policies.length,
    policySet: () => loaded,
    policyText: () => watch.text,
    referencedTexts: () => watch.referenced,
    policyRefusal: () => watch.refusal,
    control,
    applyChange: async (change) => changeFeed?.apply(change),
    limited: () => metrics.limited.list(clock()),
    paths: () => metrics.paths.list(clock()),
    takeSeconds: () => metrics.seconds.take(clock()),
    addresses,
    replicas: () => guarded?.stats().replicas ?? 1,
    ready: () => !upstream.draining,
    storeAvailable: () => guarded?.stats().available ?? true,
    storeAwaySince: () => guarded?.stats().openSince ?? null,
    findDecision: (id) => decisions.find(id),
    listDecisions: (before, count) => decisions.list(before, count),
    exchangeDenied: (own) => decisions.exchangeDenied(own),
    reload() {
      watch.reload();
      certificate?.reload();
      accessLog?.reopen();
    },
    samples: () => [
      ...metrics.samples(),
      ...partSamples(servers, upstream, guarded, decisions, accessLog),
      ...(tracing?.samples() ?? []),
      ...(certificate?.samples() ?? []),
      ...(frames?.samples() ?? []),
      ...(introductions?.samples() ?? []),
    ],
    async close() {
      await drain(config.drainTimeoutMs);
      await closeStores();
    },
  };
}

// The functions below import modules that only some configurations need. This saves start time and memory.

/**
 * @returns a function that loads a policy file and throws PolicyFileError. With a decision listener, it also refuses
 * policies that the listener cannot apply.
 */
export async function policyLoader(settings: DecisionSettings | null): Promise<typeof loadTestedPolicies> {
  if (settings === null) return loadTestedPolicies;
  const { loadPredictable } = await import('./decision-listener/predictable-policies.ts');
  return loadPredictable;
}

async function openDecisionStore(store: StoreAccess | null, wallClock: Clock): Promise<DecisionStore> {
  if (store === null) return new MemoryDecisions(wallClock);
  const { RedisDecisions } = await import('./operate/decisions/redis-decisions.ts');
  return new RedisDecisions(store);
}

async function openListeners(
  settings: DecisionSettings | null,
  parts: Parameters<typeof openDecisionListeners>[1],
  log: Logger,
): Promise<DecisionListeners | null> {
  if (settings === null) return null;
  const { openDecisionListeners } = await import('./decision-listener/listeners.ts');
  return openDecisionListeners(settings, parts, log);
}

async function openCertificate(parts: GatewayParts): Promise<Certificate | null> {
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

async function openTracing({ config, clock, replica, log }: GatewayParts): Promise<Tracing | null> {
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
