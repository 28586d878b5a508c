/** Listeners for proxies that ask the gateway about each request, over HTTP or gRPC. */
import type { Logger } from 'pino';
import { ListenError, LOOPBACK } from '#gateway/listen/listener.ts';
import { type DecisionServer, PublicServer, type PublicServerOptions } from '#gateway/listen/server.ts';
import { Refusals } from '#gateway/request/refuse.ts';
import { assertFree } from '#shared/assert-free.ts';
import type { Millis } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { CheckedRequest } from './checked-request.ts';
import type { DescribedOptions } from './described-request.ts';
import type { DecisionSettings } from './settings.ts';

export interface DecisionListeners {
  readonly http: PublicServer | null;
  listen(reusePort: boolean): Promise<void>;
  drain(deadlineMs: Millis): Promise<void>;
}

/**
 * Longer than proxies keep idle connections (Envoy: an hour). So no proxy sends a request on a connection that the
 * gateway has just closed.
 */
const KEEP_ALIVE_MS: Millis = 3_700_000;
/** Room for the largest client header section that proxies accept, and for what they add. */
const HEADER_BYTES_MAX = 65_536;
/** Features that make no sense between a proxy and the gateway. */
const PLAIN = { introductions: null, handshakes: null } as const;

export async function openDecisionListeners(
  { host, port, grpcPort, isCredentialProven }: DecisionSettings,
  shared: Omit<PublicServerOptions, keyof typeof PLAIN>,
  log: Logger,
): Promise<DecisionListeners> {
  const { clock, enforcement, upstream, accessLog } = shared;
  if (enforcement.options.trust.kind === 'hops' && !LOOPBACK.test(host)) {
    log.warn(
      { host },
      'anyone who reaches GATEWAY_DECISION_HOST can claim any client address; set networks instead of a number in GATEWAY_TRUSTED_PROXIES',
    );
  }
  const options: DescribedOptions = {
    isCredentialProven,
    onBadRequest: onceAMinute(clock, (reason: string) =>
      log.warn({ reason }, 'a proxy sent an authorization request that cannot be answered; it is refused'),
    ),
    parts: { enforcement, refusals: new Refusals(shared) },
    accessLog,
  };
  const decisionServer: DecisionServer = {
    keepAliveMs: KEEP_ALIVE_MS,
    headerBytesMax: HEADER_BYTES_MAX,
    begin: (arrival, parts) => new CheckedRequest(arrival, parts, options).run(),
  };
  const http = port === null ? null : new PublicServer({ ...shared, ...PLAIN, decisionServer });
  // Load the gRPC server only if it is on, to save memory.
  const grpc =
    grpcPort === null
      ? null
      : new (await import('./rate-limit-server.ts')).RateLimitServer({ ...options, upstream });
  return {
    http,
    async listen(reusePort) {
      await http?.listen({ host, port: port ?? 0, reusePort }).catch(refuseFor('GATEWAY_DECISION_PORT'));
      await grpc
        ?.listen({ host, port: grpcPort ?? 0, reusePort })
        .catch(refuseFor('GATEWAY_DECISION_GRPC_PORT'));
    },
    async drain(deadlineMs) {
      await Promise.all([http?.drain(deadlineMs), grpc?.drain(deadlineMs)]);
    },
  };
}

/** @throws ListenError */
export async function assertDecisionPortsFree({ host, port, grpcPort }: DecisionSettings): Promise<void> {
  if (port !== null) await assertFree(host, port).catch(refuseFor('GATEWAY_DECISION_PORT'));
  if (grpcPort !== null) await assertFree(host, grpcPort).catch(refuseFor('GATEWAY_DECISION_GRPC_PORT'));
}

function refuseFor(portVariable: string): (cause: unknown) => never {
  return (cause) => {
    throw new ListenError(portVariable, 'GATEWAY_DECISION_HOST', cause);
  };
}
