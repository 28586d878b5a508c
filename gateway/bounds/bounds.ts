/**
 * Bounds on resources that clients hold. Each bound has a total, a share for one client address, and a share for one
 * IPv6 network. Each process counts for itself. Whatever is taken must be given back exactly once, for the same client.
 */
import type { Clock } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { BOUND_NAMES, BOUNDS, type BoundName, forEachBound } from './bound-names.ts';
import type { Client } from './clients.ts';

export interface BoundLimits {
  readonly total: number;
  readonly perClient: number;
}

export type BoundSettings = Readonly<Record<BoundName, BoundLimits>>;

/** `client` and `network`: the share is used up. `total`: the bound is reached. */
export type Refusal = 'client' | 'network' | 'total';

/** The share of one IPv6 network: a quarter of the total, or one client's share if that is more. */
const NETWORK_PART = 1 / 4;

export class Bound implements BoundLimits {
  readonly name: BoundName;
  readonly total: number;
  /** The current total, at most the configured one. */
  limit = 0;
  perClient = 0;
  perNetwork = 0;
  held = 0;
  readonly refusals: Record<Refusal, number> = { client: 0, network: 0, total: 0 };
  readonly #index: number;
  readonly #perClientMax: number;
  readonly #onRefused: (bound: Bound, refusal: Refusal) => void;

  constructor(name: BoundName, limits: BoundLimits, onRefused: (bound: Bound, refusal: Refusal) => void) {
    this.name = name;
    this.total = limits.total;
    this.#perClientMax = Math.min(limits.perClient, limits.total);
    this.#index = BOUND_NAMES.indexOf(name);
    this.#onRefused = onRefused;
    this.limitTo(limits.total);
  }

  /** Lowers or raises the current total. Shares change in proportion. Nothing that is held is taken away. */
  limitTo(limit: number): void {
    this.limit = limit;
    this.perClient = Math.max(1, Math.ceil((limit * this.#perClientMax) / this.total));
    this.perNetwork = Math.max(this.perClient, Math.floor(limit * NETWORK_PART));
  }

  heldBy(holder: Client): number {
    return holder.held[this.#index] ?? 0;
  }

  roomFor(client: Client): number {
    const own = this.perClient - this.heldBy(client);
    return client.network === null ? own : Math.min(own, this.perNetwork - this.heldBy(client.network));
  }

  refusalFor(client: Client | null, times = 1): Refusal | null {
    if (client !== null && this.heldBy(client) + times > this.perClient) return 'client';
    if (client?.network != null && this.heldBy(client.network) + times > this.perNetwork) return 'network';
    return this.held + times > this.limit ? 'total' : null;
  }

  /**
   * @param client null if only the total applies, as for connections from a trusted proxy
   * @returns null if taken, else the reason
   */
  take(client: Client | null, times = 1): Refusal | null {
    const refusal = this.refusalFor(client, times);
    if (refusal !== null) return refusal;
    this.held += times;
    this.#count(client, times);
    return null;
  }

  give(client: Client | null, times = 1): void {
    this.held -= times;
    this.#count(client, -times);
  }

  #count(client: Client | null, times: number): void {
    if (client === null) return;
    client.held[this.#index] = this.heldBy(client) + times;
    const { network } = client;
    if (network !== null) network.held[this.#index] = this.heldBy(network) + times;
  }

  limitOf(refusal: Refusal): number {
    return { client: this.perClient, network: this.perNetwork, total: this.limit }[refusal];
  }

  /** Counts and logs that a client was refused, or lost something to make room. */
  refused(refusal: Refusal): void {
    this.refusals[refusal]++;
    this.#onRefused(this, refusal);
  }
}

export type Bounds = Readonly<Record<BoundName, Bound>>;

const REACHED: Readonly<Record<Refusal, string>> = {
  client:
    'a client address has reached its share and is refused more; where it is a proxy of yours, name it in GATEWAY_TRUSTED_PROXIES',
  network:
    'the clients of an IPv6 network have reached a quarter of what all may hold, and are refused more; such a network is a /48',
  total: 'a bound for all clients is reached; the excess is refused',
};

interface BoundsLog {
  warn(fields: object, message: string): void;
}

/** @param log gets at most one line a minute for each bound and reason */
export function createBounds(
  settings: BoundSettings,
  { clock, log }: { readonly clock: Clock; readonly log: BoundsLog },
): Bounds {
  return forEachBound((name) => {
    const warning = (refusal: Refusal) =>
      onceAMinute(clock, (bound: Bound) =>
        log.warn(
          {
            bound: name,
            limit: bound.limitOf(refusal),
            refusals: bound.refusals[refusal],
            setting: refusal === 'client' ? 'GATEWAY_CLIENT_SHARE' : BOUNDS[name].variable,
          },
          REACHED[refusal],
        ),
      );
    const warn = { client: warning('client'), network: warning('network'), total: warning('total') };
    return new Bound(name, settings[name], (bound, refusal) => warn[refusal](bound));
  });
}
