/** Wiring of the library: limiter and policies, without listener and upstream. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createBounds } from '#gateway/bounds/bounds.ts';
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { Origins } from '#gateway/http/request-origin.ts';
import { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { Offenders } from '#gateway/operate/control/offenders.ts';
import { openCounters } from '#gateway/operate/control/open-counters.ts';
import { shadowed } from '#gateway/operate/control/shadows.ts';
import { Decisions } from '#gateway/operate/decisions/decisions.ts';
import { MemoryDecisions } from '#gateway/operate/decisions/memory-decisions.ts';
import { RedisDecisions } from '#gateway/operate/decisions/redis-decisions.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { Enforcement } from '#gateway/request/enforcement.ts';
import { Refusals } from '#gateway/request/refuse.ts';
import type { Clock } from '#shared/clock.ts';
import { InnerRequest } from './inner-request.ts';
import type { LibraryLog, LibrarySettings } from './settings.ts';

interface InnerGatewayParts {
  readonly policies: PolicySet;
  readonly settings: LibrarySettings;
  readonly log: LibraryLog;
  readonly clock: Clock;
  readonly wallClock: Clock;
  readonly newSecret: () => string;
  readonly replica: string;
}

export type Middleware = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

export interface InnerGateway {
  /**
   * Decides about one request. Call it once, before the body is read.
   *
   * If the request is admitted, the limit headers are set on `res`, `req.url` is the canonical path, and the gateway
   * learns from the status of the reply. If it is refused, `res` is already answered and must not be written to.
   *
   * @returns whether it is admitted; also false if the client has left. Does not reject if the store is unavailable
   */
  limit(req: IncomingMessage, res: ServerResponse): Promise<boolean>;
  /** A middleware for Express, Connect and Polka: `app.use(gateway.middleware)`. */
  readonly middleware: Middleware;
  /** Replaces the policies. Counters are identified by name and keep their values. */
  use(policies: PolicySet): void;
  /** Whether the store is available. Always true if counters are in memory. */
  storeAvailable(): boolean;
  close(): Promise<void>;
}

/** Maximum numbers of counters and of proven credentials in memory without a store. */
const COUNTERS_MAX = 262_144;
const CREDENTIALS_MAX = 65_536;

/** @throws StoreRefusedError if the store refuses the login */
export async function openGateway(parts: InnerGatewayParts): Promise<InnerGateway> {
  const { policies, settings, clock, wallClock, log, replica } = parts;
  const { config, secrets } = settings;
  let loaded = policies;
  const use = (): void => enforcement.use(shadowed(loaded, shadows.endsAt));
  const { limiter, guarded, control, bans, shadows, changeFeed, salt } = await openCounters({
    store: secrets.store,
    identitySecret: secrets.identitySecret,
    clock,
    log,
    replica,
    newSalt: parts.newSecret,
    countersMax: COUNTERS_MAX,
    credentialsMax: CREDENTIALS_MAX,
    onSalt: (shared) => {
      enforcement.useSalt(shared);
      decisions.useSalt(shared);
    },
    onShadows: use,
    counters: () => countersOf(enforcement.policies),
  });
  const metrics = new Metrics();
  const offenders = new Offenders({
    control,
    onBan: (row, mode) => metrics.banned(row, mode),
    clock,
    log,
  });
  const enforcement = new Enforcement(policies, salt, {
    clock,
    wallClock,
    limiter,
    bans,
    offenders,
    metrics,
    trust: config.trust,
    headerFilter: new HeaderFilter(),
    onUntrustedChain: () => undefined,
  });
  const decisions = new Decisions({
    store: secrets.store === null ? new MemoryDecisions(wallClock) : new RedisDecisions(secrets.store),
    isStoreUsed: () => guarded?.stats().available ?? false,
    wallClock,
    salt,
    policyVersion: () => enforcement.policies.version,
    replica,
  });
  const refusals = new Refusals({
    enforcement,
    decisions,
    // The library does not use bounds.
    upstream: { bounds: createBounds(config.bounds, { clock, log: { warn: () => undefined } }) },
  });
  await changeFeed?.start();

  const origins = new Origins(config.trust);
  const requestParts = { enforcement, refusals, origins, leftMsMax: config.upstreamTimeoutMs };
  const limit = (req: IncomingMessage, res: ServerResponse): Promise<boolean> =>
    new Promise((resolve) => new InnerRequest(req, res, requestParts, resolve).run());
  return {
    limit,
    middleware: (req, res, next) => {
      limit(req, res).then((isAdmitted) => {
        if (isAdmitted) next();
      }, next);
    },
    use(set) {
      loaded = set;
      use();
    },
    storeAvailable: () => guarded?.stats().available ?? true,
    async close() {
      changeFeed?.stop();
      shadows.close();
      offenders.close();
      control.close();
      await Promise.all([limiter.close(), decisions.close()]);
    },
  };
}
