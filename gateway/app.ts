/** Builds a running gateway from its parts, in dependency order. */

import type { Logger } from 'pino';
import type { Row } from '#gateway/bans/rows.ts';
import type { Network, ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import type { RandomInt } from '#shared/random-int.ts';
import { createBounds } from './bounds/bounds.ts';
import { Clients } from './bounds/clients.ts';
import type { GatewaySettings } from './config.ts';
import { HeaderFilter } from './http/header-filter.ts';
import { PublicServer } from './listen/server.ts';
import { coreSamples, groupSamples } from './observe/core-samples.ts';
import { families } from './observe/metrics/exposition.ts';
import { Metrics } from './observe/metrics/metrics.ts';
import type { Ranked } from './observe/metrics/ranking.ts';
import { Traffic } from './observe/traffic.ts';
import { rankOf } from './observers/groups.ts';
import { observersOf } from './observers/observers.ts';
import { startOrClose, together } from './part/life.ts';
import type { LoadPolicies } from './part/part.ts';
import { type OpenParts, openParts, type PartInUse } from './parts.ts';
import type { PolicySet } from './policy/policy-set.ts';
import { FileWatch, type FileWatchOptions, loadWatched } from './policy/watched-file.ts';
import { youngCollector } from './process/collect-young.ts';
import type { ProcessReport } from './process/supervisor.ts';
import { Upstream } from './proxy/upstream.ts';
import { type Limiting, openLimiting } from './request/open-limiting.ts';
import { loadTestedPolicies } from './workbench/rehearsal/policy-tests.ts';

interface GatewayParts {
  readonly settings: GatewaySettings;
  readonly clock: Clock;
  readonly wallClock: Clock;
  /** Returns a new secret with each call. It becomes the salt if none is configured or stored. */
  readonly newSalt: () => string;
  readonly randomInt: RandomInt;
  readonly replica: string;
  /** See GuardedLimiterOptions; the default without a store is larger. */
  readonly rememberedMax?: number;
  readonly log: Logger;
  readonly readPolicyFile: (file: string) => string;
}

/** A gateway in this process. */
export type Gateway = Awaited<ReturnType<typeof startGateway>>;

export async function startGateway(options: GatewayParts) {
  const { settings, clock, wallClock, log, replica } = options;
  const { config } = settings;
  const metrics = new Metrics();
  const watch = await openPolicyWatch(options, {
    onLoaded(set) {
      metrics.reloads.value++;
      limiting.use(set);
      upstream.protect(set.protect);
      log.info({ file: set.file, policies: set.policies.length }, 'the edited policy file is in use');
      warnOfLists(set, log);
    },
    onRefused(error) {
      metrics.reloadFailures.value++;
      log.error({ reason: error.message }, 'the edited policy file is refused; the old policies stay in use');
    },
  });
  const surroundings = { gathered: settings.gathered, clock, wallClock, replica, log };
  const parts = await openParts(settings.parts, surroundings);
  const limiting = await openWith(options, watch.loaded, metrics).catch(async (error: Error) => {
    await parts.close();
    throw error;
  });
  const upstream = openUpstream(options, parts);
  upstream.protect(watch.loaded.protect);
  const opened = { metrics, parts, limiting, upstream };
  const { core, traffic } = coreOf(options, opened);
  const server = new PublicServer({
    ...core,
    hasOwnParser: config.hasOwnParser,
    keepAliveMs: config.keepAliveMs,
    headerBytesMax: config.headerBytesMax,
    upgrades: new Set(config.upgrades),
  });
  const { reusePort } = config;
  let port = 0;
  const lives = together([
    limiting,
    { ...parts, start: () => parts.start({ server: core, reusePort }) },
    {
      samples: () => [
        ...metrics.samples(),
        ...groupSamples(core.enforcement.policies),
        ...coreSamples(upstream, limiting.guarded, limiting.decisions),
      ],
      close: () => upstream.close(),
    },
    {
      async start() {
        port = await server.listen({ host: config.host, port: config.port, reusePort });
      },
      samples: () => server.samples(),
      drain: (deadlineMs) => server.drain(deadlineMs),
    },
    watch,
    ...(await watchProxyFiles(config.trust, clock, log)),
  ]);
  await startOrClose(lives);
  return {
    ...told(opened, traffic, clock),
    ...lives,
    port,
    policyText: () => watch.text,
    policyRefusal: () => watch.refusal,
    families: async () => [families(lives.samples())],
    /** Lets requests in flight finish, then closes everything. */
    async close() {
      await lives.drain(config.drainTimeoutMs);
      await lives.close();
    },
  };
}

function openUpstream({ settings: { config }, clock, log }: GatewayParts, parts: OpenParts): Upstream {
  return new Upstream({
    origin: config.upstream,
    timeoutMs: config.upstreamTimeoutMs,
    headerBytesMax: config.headerBytesMax,
    clock,
    bounds: createBounds(config.bounds, { clock, log }),
    log,
    collectYoung: youngCollector(),
    openProtection: parts.slots.openProtection,
  });
}

/** The pieces of the core, and the optional parts. */
interface Opened {
  readonly metrics: Metrics;
  readonly parts: OpenParts;
  readonly limiting: Limiting;
  readonly upstream: Upstream;
}

/** The listeners of the gateway share these. */
function coreOf(options: GatewayParts, { metrics, parts, limiting, upstream }: Opened) {
  const { clock, log } = options;
  const { config } = options.settings;
  const { addresses, openProtection: _, ...slots } = parts.slots;
  const { enforcement, decisions, offenders } = limiting;
  const traffic = new Traffic({ policies: () => enforcement.policies, file: config.policiesFile, log });
  const events = observersOf({
    ...{ clock, metrics, addresses, offenders, log, trust: config.trust },
    limiter: enforcement.options.limiter,
    more: [traffic.observer],
  });
  const shared = { enforcement, events, metrics, addresses, rankOf, upstream, decisions, clock };
  return { core: { ...slots, ...shared, clients: new Clients() }, traffic };
}

/** Operators and the supervisor ask a gateway these things. */
function told({ metrics, parts, limiting, upstream }: Opened, traffic: Traffic, clock: Clock) {
  const { addresses } = parts.slots;
  const { control, decisions, guarded } = limiting;
  /** @param withRankings whether it has the clients denied most */
  const report = (withRankings: boolean): ProcessReport => {
    const store = guarded?.stats();
    return {
      storeAvailable: store?.available ?? true,
      storeOutage: store?.lastOutage ?? null,
      upstreamOutage: upstream.outage.last,
      replicas: store?.replicas ?? 1,
      limited: withRankings ? metrics.limited.list(clock()) : [],
      matches: traffic.report,
    };
  };
  return {
    addresses,
    control,
    report,
    policies: () => limiting.policySet(),
    /** Applies a row that the supervisor has already written to the store. */
    applyChange: (row: Row) => limiting.applyChange(row),
    ready: () => !upstream.draining,
    processes: async () => [report(true)],
    findDecision: (id: string) => decisions.find(id),
    listDecisions: (before: string | null, count: number) => decisions.list(before, count),
    exchangeDenied: (own: readonly Ranked[]) => decisions.exchangeDenied(own),
  };
}

/**
 * @returns a function that loads a policy file and runs its tests. A part in use may refuse more.
 */
export async function policyLoader(parts: readonly PartInUse[]): Promise<LoadPolicies> {
  return (await parts.find(({ loader }) => loader !== undefined)?.loader?.()) ?? loadTestedPolicies;
}

/** Loads the policy file. The watch begins with its `start`. @throws PolicyFileError */
export async function openPolicyWatch(
  { settings, readPolicyFile: read, clock }: Pick<GatewayParts, 'settings' | 'readPolicyFile' | 'clock'>,
  heard: Pick<FileWatchOptions<PolicySet>, 'onLoaded' | 'onRefused'>,
): Promise<FileWatch<PolicySet>> {
  const { policiesFile: file } = settings.config;
  const load = await policyLoader(settings.parts);
  const sizesOf = ({ listFiles }: PolicySet) => listFiles.sizes;
  return new FileWatch(loadWatched(read(file), file, load), { file, read, load, sizesOf, clock, ...heard });
}

/** Watches the files of trusted proxies. @param log null if another process reports changes */
export async function watchProxyFiles(
  trust: ProxyTrust,
  clock: Clock,
  log: Logger | null,
): Promise<readonly FileWatch<readonly Network[]>[]> {
  if (trust.kind !== 'cidrs' || trust.networks.files.length === 0) return [];
  const { watchOf } = await import('./request/proxy-files.ts');
  return trust.networks.files.map((file) => watchOf(file, clock, log));
}

async function openWith(options: GatewayParts, policies: PolicySet, metrics: Metrics): Promise<Limiting> {
  const { clock, log } = options;
  const { config, secrets } = options.settings;
  if (secrets.store === null)
    log.warn(
      'no GATEWAY_REDIS_URL: counters are in the memory of this process; a restart loses them, and replicas do not share them',
    );
  if (policies.planHeader !== null && config.trust.kind === 'none')
    log.warn('the policy file has plans, but no proxy is trusted to name them; set GATEWAY_TRUSTED_PROXIES');
  warnOfLists(policies, log);
  const warnOfChain = onceAMinute(clock, () =>
    log.warn(
      'a trusted proxy sent an X-Forwarded-For chain that cannot be read; such requests share one bucket',
    ),
  );
  return openLimiting({
    ...options,
    policies,
    secrets,
    onBan: (row, mode) => {
      metrics.bans.of(mode, row).value++;
    },
    trust: config.trust,
    headerFilter: new HeaderFilter(config.passedHeaders),
    onUntrustedChain: () => {
      metrics.untrustedChains.value++;
      warnOfChain();
    },
  });
}

function warnOfLists({ file, listFiles }: PolicySet, log: GatewayParts['log']): void {
  for (const [, text] of listFiles.notes) log.warn({ file }, text);
}
