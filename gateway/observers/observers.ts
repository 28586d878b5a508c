/** All who hear of each request, in the order in which they hear. */
import type { Logger } from 'pino';
import type { RefusedAddresses } from '#gateway/addresses/addresses.ts';
import type { Offenders } from '#gateway/bans/offenders.ts';
import type { Limiter, Outcome } from '#gateway/limiter/limiter.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { allOf, type Events, type Observer } from '#gateway/request/events.ts';
import { learn } from '#gateway/request/reading/prove.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { deniedClients } from './denied-clients.ts';
import { groups } from './groups.ts';
import { offences } from './offences.ts';
import { requestMetrics } from './request-metrics.ts';

interface ObserversOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly limiter: Limiter;
  readonly trust: ProxyTrust;
  /** Counts denials for bans; null if denials cause no bans. */
  readonly offenders: Pick<Offenders, 'note'> | null;
  /** Addresses of refused clients, if operators may see them. */
  readonly addresses: RefusedAddresses | null;
  readonly log: Pick<Logger, 'warn'>;
  /** Those of parts. */
  readonly more?: readonly Observer[];
}

export function observersOf(options: ObserversOptions): Events {
  const { clock, metrics, limiter, trust, offenders, addresses, log, more = [] } = options;
  return allOf([
    requestMetrics(metrics, clock),
    accessLog,
    deniedClients(metrics.limited, addresses),
    ...(offenders === null ? [] : [offences(offenders, limiter, trust)]),
    groups(metrics, limiter),
    proofs(limiter),
    missingUnits(log, clock),
    ...more,
  ]);
}

/** Fills the entry of the access log. A refusal adds itself, because only then its id is known. */
const accessLog: Observer = {
  located(request) {
    if (request.entry !== null) request.entry.request = request;
  },
  charged({ entry, caller }) {
    if (entry !== null) entry.address = caller.identity();
  },
  replied({ entry }, { status, tookMs }) {
    if (entry === null) return;
    entry.upstreamMs = tookMs;
    if (status === 101) entry.status = status;
  },
};

/** Learns from each reply whether the credential of its request works. */
function proofs(limiter: Limiter): Observer {
  return {
    replied({ identified }, { status }) {
      if (identified !== null) learn(limiter, identified, status);
    },
  };
}

/** Logs that the application does not report the units of its replies. */
function missingUnits(log: ObserversOptions['log'], clock: Clock): Observer {
  const warn = onceAMinute(clock, (policy: string, header: string) =>
    log.warn(
      { policy, header },
      'a reply does not report its units, so the reserve stays charged: let the application send this header once, with a whole number, on every reply',
    ),
  );
  const lacks = ({ bucket: { policy, counter }, lacksUnits }: Outcome): void => {
    if (lacksUnits && !counter.forUnproven && policy.cost.kind === 'reply-header')
      warn(policy.name, policy.cost.header);
  };
  return { settled: (_request, outcomes) => outcomes.forEach(lacks) };
}
