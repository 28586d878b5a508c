/** The listener for proxies that ask the gateway about each request. */
import type { Logger } from 'pino';
import { ListenError, LOOPBACK } from '#gateway/listen/listener.ts';
import { type DecisionServer, PublicServer, type PublicServerOptions } from '#gateway/listen/server.ts';
import { assertFree } from '#shared/assert-free.ts';
import type { Millis } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { type CheckedOptions, CheckedRequest } from './checked-request.ts';
import type { DecisionSettings } from './settings.ts';

/**
 * Longer than proxies keep idle connections (Envoy: an hour). So no proxy sends a request on a connection that the
 * gateway has just closed.
 */
const KEEP_ALIVE_MS: Millis = 3_700_000;
/** Room for the largest client header section that proxies accept, and for what they add. */
const HEADER_BYTES_MAX = 65_536;
/** Features that make no sense between a proxy and the gateway. */
const PLAIN = { introductions: null, handshakes: null } as const;

export async function openDecisionListener(
  { host, port, isCredentialProven }: DecisionSettings,
  shared: Omit<PublicServerOptions, keyof typeof PLAIN>,
  log: Logger,
  reusePort: boolean,
): Promise<PublicServer> {
  const { clock, enforcement } = shared;
  if (enforcement.options.trust.kind === 'hops' && !LOOPBACK.test(host)) {
    log.warn(
      { host },
      'anyone who reaches GATEWAY_DECISION_HOST can claim any client address; set networks instead of a number in GATEWAY_TRUSTED_PROXIES',
    );
  }
  const options: CheckedOptions = {
    isCredentialProven,
    onBadRequest: onceAMinute(clock, (reason: string) =>
      log.warn({ reason }, 'a proxy sent an authorization request that cannot be answered; it is refused'),
    ),
  };
  const decisionServer: DecisionServer = {
    keepAliveMs: KEEP_ALIVE_MS,
    headerBytesMax: HEADER_BYTES_MAX,
    begin: (arrival, parts) => new CheckedRequest(arrival, parts, options).run(),
  };
  const server = new PublicServer({ ...shared, ...PLAIN, decisionServer });
  await server.listen({ host, port, reusePort }).catch(refusePort);
  return server;
}

/** @throws ListenError */
export async function assertDecisionPortFree({ host, port }: DecisionSettings): Promise<void> {
  await assertFree(host, port).catch(refusePort);
}

function refusePort(cause: unknown): never {
  throw new ListenError('GATEWAY_DECISION_PORT', 'GATEWAY_DECISION_HOST', cause);
}
