/** Wiring of the library: limiter and policies, without listener and upstream. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createBounds } from '#gateway/bounds/bounds.ts';
import { defaultBounds } from '#gateway/bounds/settings.ts';
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { Origins } from '#gateway/http/request-origin.ts';
import { Metrics } from '#gateway/observe/metrics/metrics.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { openLimiting } from '#gateway/request/open-limiting.ts';
import { Refusals } from '#gateway/request/refuse.ts';
import type { Clock } from '#shared/clock.ts';
import type { RandomInt } from '#shared/random-int.ts';
import { InnerRequest } from './inner-request.ts';
import type { LibraryLog, LibrarySettings } from './settings.ts';

interface InnerGatewayParts {
  readonly policies: PolicySet;
  readonly settings: LibrarySettings;
  readonly log: LibraryLog;
  readonly clock: Clock;
  readonly wallClock: Clock;
  readonly newSecret: () => string;
  readonly randomInt: RandomInt;
  readonly replica: string;
}

export type Middleware = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

export interface InnerGateway {
  /**
   * Decides about one request. Call it once, before the body is read.
   *
   * If the request is admitted, the limit headers are set on `res`, `req.url` has no dot segments, and the gateway
   * learns from the status of the reply. `req.headers['x-gateway-over']` names the policies that mark it; a client's own
   * field is removed. If it is refused, `res` is already answered and must not be written to.
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
  const { trust, upstreamTimeoutMs } = settings.settings;
  const limiting = await openLimiting({
    policies,
    secrets: settings.secrets,
    clock,
    wallClock,
    log,
    replica,
    newSalt: parts.newSecret,
    randomInt: parts.randomInt,
    countersMax: COUNTERS_MAX,
    credentialsMax: CREDENTIALS_MAX,
    metrics: new Metrics(),
    trust,
    headerFilter: new HeaderFilter(),
    onUntrustedChain: () => undefined,
  });
  const { enforcement, decisions, guarded } = limiting;
  const refusals = new Refusals({
    enforcement,
    decisions,
    // The library does not use bounds.
    upstream: { bounds: createBounds(defaultBounds(), { clock, log: { warn: () => undefined } }) },
  });
  await limiting.start();

  const origins = new Origins(trust);
  const requestParts = { enforcement, refusals, origins, leftMsMax: upstreamTimeoutMs };
  const limit = (req: IncomingMessage, res: ServerResponse): Promise<boolean> =>
    new Promise((resolve) => new InnerRequest(req, res, requestParts, resolve).run());
  return {
    limit,
    middleware: (req, res, next) => {
      limit(req, res).then((isAdmitted) => {
        if (isAdmitted) next();
      }, next);
    },
    use: (set) => limiting.use(set),
    storeAvailable: () => guarded?.stats().available ?? true,
    close: () => limiting.close(),
  };
}
