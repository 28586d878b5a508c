/** Wiring, in reading order: parts in, a running data plane out. */
import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock, Millis } from '#shared/clock.ts';
import { AccessLog } from './access-log/access-log.ts';
import { createBounds } from './bounds/bounds.ts';
import { Clients } from './bounds/clients.ts';
import { boundSamples } from './bounds/samples.ts';
import { youngCollector } from './collect-young.ts';
import type { GatewayConfig, GatewaySecrets } from './config.ts';
import { Bans } from './control/bans.ts';
import type { Control } from './control/control.ts';
import type { LimitedIdentity } from './control/limited.ts';
import { MemoryControl } from './control/memory-control.ts';
import { News } from './control/news.ts';
import { StoreControl } from './control/store-control.ts';
import type { DecisionRecord } from './decisions/decision-record.ts';
import { Decisions } from './decisions/decisions.ts';
import { MemoryDecisions } from './decisions/memory-decisions.ts';
import { RedisDecisions } from './decisions/redis-decisions.ts';
import { Enforcement } from './enforce.ts';
import { KnownCounters } from './limiter/known-counters.ts';
import type { Limiter } from './limiter/limiter.ts';
import { MemoryLimiter } from './limiter/memory.ts';
import { GuardedLimiter } from './limiter/outage.ts';
import { counter, gauge, Metrics, type Sample } from './metrics.ts';
import { countersOf } from './policy/counter.ts';
import type { PolicySet } from './policy/policy.ts';
import { processSamples } from './process-samples.ts';
import { HeaderFilter } from './proxy/header-filter.ts';
import { Upstream } from './proxy/upstream.ts';
import { Introductions } from './proxy-protocol/introductions.ts';
import { loadTestedPolicies } from './rehearsal/policy-tests.ts';
import { PublicServer } from './server.ts';
import { Certificate } from './tls/certificate.ts';
import { FileWatch, loadWatched } from './watched-file.ts';

export interface GatewayParts {
  readonly config: GatewayConfig;
  readonly secrets: GatewaySecrets;
  readonly clock: Clock;
  readonly wallClock: Clock;
  /** A fresh secret, used as salt where none is configured or kept in the store. */
  readonly newSalt: () => string;
  /** Name of this process among the replicas. */
  readonly replica: string;
  readonly log: Logger;
  readonly readPolicyFile: (file: string) => string;
  readonly reusePort: boolean;
}

export interface Gateway {
  readonly port: number;
  readonly policies: number;
  /** In use at this moment. */
  policySet(): PolicySet;
  /** Over the store, or of this process where there is none; closed with the gateway. */
  readonly control: Control;
  /** Who is denied most while somebody asks. */
  limited(): readonly LimitedIdentity[];
  /** Living ones, as last heard; 1 without a store. */
  replicas(): number;
  samples(): Sample[];
  /** Not draining, and so fit to get traffic. */
  ready(): boolean;
  storeAvailable(): boolean;
  /** @throws when the store cannot be asked */
  findDecision(id: string): Promise<DecisionRecord | null>;
  reload(): void;
  /** Lets requests in flight finish, then closes everything. */
  close(): Promise<void>;
}

/** Said at most once in this time, however many requests it concerns. */
const UNTRUSTED_CHAIN_LOG_MS: Millis = 60_000;

/** Without a store of its own: so many counters and proven credentials, 40 bytes each. */
const COUNTERS_MAX = 1_048_576;
const CREDENTIALS_MAX = 131_072;

export async function startGateway(parts: GatewayParts): Promise<Gateway> {
  const { config, secrets, clock, log } = parts;
  const metrics = new Metrics();
  const text = parts.readPolicyFile(config.policiesFile);
  const { loaded: policies, inUse } = loadWatched(text, config.policiesFile, loadTestedPolicies);

  let salt = secrets.identitySecret ?? parts.newSalt();
  let limiter: Limiter;
  let guarded: GuardedLimiter | null = null;
  const bans = new Bans();
  let control: Control;
  if (secrets.store === null) {
    const known = new KnownCounters({ countersMax: COUNTERS_MAX, credentialsMax: CREDENTIALS_MAX });
    limiter = new MemoryLimiter({ clock, known });
    control = new MemoryControl({ clock, known, bans, salt });
    log.warn(
      'no GATEWAY_REDIS_URL: counters live in this process, end with it, and are not shared with other replicas',
    );
  } else {
    guarded = new GuardedLimiter({
      store: secrets.store,
      clock,
      log,
      budgetMs: config.storeTimeoutMs,
      replica: parts.replica,
      // A configured secret stays here: whoever reads the store must not be able to test guesses.
      salt: secrets.identitySecret === null ? salt : '',
      onSalt: (shared) => enforcement.useSalt(shared),
    });
    limiter = guarded;
    control = new StoreControl(secrets.store, secrets.identitySecret);
    const shared = await guarded.start().catch(async (error: Error) => {
      await guarded?.close();
      throw error;
    });
    if (secrets.identitySecret === null) salt = shared;
  }

  const upstream = new Upstream({
    origin: config.upstream,
    timeoutMs: config.upstreamTimeoutMs,
    keepAliveMs: config.upstreamKeepAliveMs,
    streamAfterMs: config.streamAfterMs,
    unreadTimeoutMs: config.unreadTimeoutMs,
    replyBufferBytes: config.replyBufferBytes,
    clock,
    bounds: createBounds(config.bounds, { clock, log }),
    collectYoung: youngCollector(),
  });
  let untrustedToldAt = Number.NEGATIVE_INFINITY;
  const enforcement = new Enforcement(policies, salt, {
    clock,
    wallClock: parts.wallClock,
    limiter,
    bans,
    metrics,
    trust: config.trust,
    headerFilter: new HeaderFilter(config.passedHeaders),
    onUntrustedChain: () => {
      if (clock() - untrustedToldAt < UNTRUSTED_CHAIN_LOG_MS) return;
      untrustedToldAt = clock();
      log.warn(
        'a trusted proxy sent an X-Forwarded-For chain that cannot be read; such requests share one bucket',
      );
    },
  });
  if (policies.planHeader !== null && config.trust.kind === 'none')
    log.warn('the policy file has plans, but no proxy is trusted to name them; set GATEWAY_TRUSTED_PROXIES');
  const { wallClock, replica } = parts;
  const decisions = new Decisions({
    store: secrets.store === null ? new MemoryDecisions(wallClock) : new RedisDecisions(secrets.store),
    isStoreUsed: () => guarded?.stats().available ?? false,
    wallClock,
    random: createHash('sha256').update(parts.newSalt()).update(replica).digest(),
    replica,
  });
  const accessLog =
    config.accessLog === null
      ? null
      : new AccessLog({ ...config.accessLog, clock, warn: (fields, message) => log.warn(fields, message) });
  const certificate =
    config.tls === null || secrets.keyPair === null
      ? null
      : new Certificate({
          files: config.tls,
          pair: secrets.keyPair,
          isHttp2: config.isHttp2,
          clock,
          wallClock,
          log,
        });
  const introductions = config.proxyProtocol ? new Introductions(config.trust) : null;
  const server = new PublicServer({
    enforcement,
    upstream,
    clients: new Clients(),
    decisions,
    accessLog,
    clock,
    introductions,
    handshakes: certificate?.handshakes ?? null,
    isHttp2: config.isHttp2,
  });
  const watch = new FileWatch(inUse, {
    file: config.policiesFile,
    read: parts.readPolicyFile,
    load: loadTestedPolicies,
    clock,
    onLoaded: (set) => {
      metrics.reloads++;
      enforcement.use(set);
      log.info({ file: set.file, policies: set.policies.length }, 'the edited policy file is in use');
    },
    onRefused: (error) => {
      metrics.reloadFailures++;
      log.error({ reason: error.message }, 'the edited policy file is refused; the old policies stay in use');
    },
  });

  const news =
    guarded === null
      ? null
      : new News({
          connection: guarded.connection,
          clock,
          known: guarded.known,
          bans,
          counters: () => countersOf(enforcement.policies),
        });
  const closeStores = async (): Promise<void> => {
    watch.stop();
    certificate?.stop();
    news?.stop();
    control.close();
    await upstream.close();
    await Promise.all([limiter.close(), decisions.close(), accessLog?.close()]);
  };
  // Whoever is banned stays so when a worker is replaced.
  await news?.start();
  const port = await server
    .listen({ host: config.host, port: config.port, reusePort: parts.reusePort })
    .catch(async (error: Error) => {
      await closeStores();
      throw error;
    });
  watch.start();
  certificate?.start();

  return {
    port,
    policies: policies.policies.length,
    policySet: () => enforcement.policies,
    control,
    limited: () => metrics.limited.watch(clock()),
    replicas: () => guarded?.stats().replicas ?? 1,
    ready: () => !upstream.draining,
    storeAvailable: () => guarded?.stats().available ?? true,
    findDecision: (id) => decisions.find(id),
    reload() {
      watch.reload();
      certificate?.reload();
      accessLog?.reopen();
    },
    samples: () => [
      ...metrics.samples(),
      ...partSamples(server, upstream, guarded, decisions, accessLog),
      ...(certificate?.samples() ?? []),
      ...(introductions?.samples() ?? []),
      ...processSamples(),
    ],
    async close() {
      await server.drain(config.drainTimeoutMs);
      await closeStores();
    },
  };
}

const CUT = 'floodgate_connections_cut_total';
const CUT_HELP = 'Client connections that were cut.';

function partSamples(
  server: PublicServer,
  upstream: Upstream,
  guarded: GuardedLimiter | null,
  decisions: Decisions,
  accessLog: AccessLog | null,
): Sample[] {
  const { waiting, unavailable, timeouts } = upstream.stats();
  const failed = 'floodgate_upstream_failures_total';
  const samples = [
    ...boundSamples(upstream.bounds),
    counter(CUT, CUT_HELP, server.watch.unreadCut, { reason: 'unread reply' }),
    counter(CUT, CUT_HELP, server.watch.silentCut, { reason: 'slow body' }),
    gauge('floodgate_upstream_waiting', 'Requests that wait for an upstream connection.', waiting),
    counter(failed, 'Requests that the upstream did not answer.', unavailable, { kind: 'unavailable' }),
    counter(failed, 'Requests that the upstream did not answer.', timeouts, { kind: 'timeout' }),
    counter(
      'floodgate_decisions_unrecorded_total',
      'Refusals of which nothing is kept, because there were too many.',
      decisions.unrecorded,
    ),
    counter(
      'floodgate_access_log_lost_total',
      'Lines of the access log that could not be taken.',
      accessLog?.lost ?? 0,
    ),
  ];
  if (guarded === null) return samples;
  const store = guarded.stats();
  samples.push(
    gauge('floodgate_store_unavailable', 'Processes that decide without the store.', store.available ? 0 : 1),
    counter('floodgate_store_degraded_total', 'Requests decided without the store.', store.degraded),
  );
  for (const [kind, value] of Object.entries(store.failures)) {
    samples.push(
      counter('floodgate_store_failures_total', 'Checks that the store did not answer.', value, { kind }),
    );
  }
  return samples;
}
