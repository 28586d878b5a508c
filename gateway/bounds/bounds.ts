/**
 * What clients may hold at once: of each thing a total, and a share for one client address. Per process.
 *
 * Whoever takes something gives it back to the same bound, for the same client, exactly once.
 */
import type { Clock, Millis } from '#shared/clock.ts';
import { BOUND_NAMES, type BoundName, boundVariable } from './bound-names.ts';
import type { Client } from './clients.ts';

export interface BoundLimits {
  readonly total: number;
  readonly perClient: number;
}

export type BoundSettings = Readonly<Record<BoundName, BoundLimits>>;

/** `client`: its share is used up; `total`: all are taken. */
export type Refusal = 'client' | 'total';

export class Bound implements BoundLimits {
  readonly name: BoundName;
  readonly total: number;
  readonly perClient: number;
  held = 0;
  /** How often a client was refused more. */
  readonly refusals: Record<Refusal, number> = { client: 0, total: 0 };
  readonly #index: number;
  readonly #onRefused: (bound: Bound, refusal: Refusal) => void;

  constructor(name: BoundName, limits: BoundLimits, onRefused: (bound: Bound, refusal: Refusal) => void) {
    this.name = name;
    this.total = limits.total;
    this.perClient = Math.min(limits.perClient, limits.total);
    this.#index = BOUND_NAMES.indexOf(name);
    this.#onRefused = onRefused;
  }

  heldBy(client: Client): number {
    return client.held[this.#index] ?? 0;
  }

  /** Why nothing can be taken now; null when something can. */
  refusalFor(client: Client | null): Refusal | null {
    if (client !== null && this.heldBy(client) >= this.perClient) return 'client';
    return this.held >= this.total ? 'total' : null;
  }

  /**
   * @param client null where nobody in particular holds it, as a trusted proxy its connections: the total alone counts
   * @returns null when taken
   */
  take(client: Client | null): Refusal | null {
    const refusal = this.refusalFor(client);
    if (refusal !== null) return refusal;
    this.held++;
    if (client !== null) client.held[this.#index] = this.heldBy(client) + 1;
    return null;
  }

  give(client: Client | null, times = 1): void {
    this.held -= times;
    if (client !== null) client.held[this.#index] = this.heldBy(client) - times;
  }

  /** A client went without, or lost something for want of room. */
  refused(refusal: Refusal): void {
    this.refusals[refusal]++;
    this.#onRefused(this, refusal);
  }
}

export type Bounds = Readonly<Record<BoundName, Bound>>;

const LOG_INTERVAL_MS: Millis = 60_000;

/** Stated here, because programs that use the library have no pino. */
interface BoundsLog {
  warn(fields: object, message: string): void;
}

/** @param log says of each bound at most once a minute that it was reached, and which setting moves it */
export function createBounds(
  settings: BoundSettings,
  { clock, log }: { readonly clock: Clock; readonly log: BoundsLog },
): Bounds {
  const loggedAt = new Map<string, Millis>();
  const onRefused = (bound: Bound, refusal: Refusal): void => {
    const key = `${bound.name} ${refusal}`;
    const now = clock();
    if (now - (loggedAt.get(key) ?? Number.NEGATIVE_INFINITY) < LOG_INTERVAL_MS) return;
    loggedAt.set(key, now);
    const variable = boundVariable(bound.name);
    log.warn(
      refusal === 'client'
        ? {
            bound: bound.name,
            limit: bound.perClient,
            refusals: bound.refusals.client,
            setting: `${variable}_PER_CLIENT`,
          }
        : { bound: bound.name, limit: bound.total, refusals: bound.refusals.total, setting: variable },
      refusal === 'client'
        ? 'a client address has reached its share and is refused more; where it is a proxy of yours, name it in GATEWAY_TRUSTED_PROXIES'
        : 'a bound for all clients is reached; what is more is refused',
    );
  };
  const bound = (name: BoundName): Bound => new Bound(name, settings[name], onRefused);
  return {
    connections: bound('connections'),
    upstream_connections: bound('upstream_connections'),
    waiting: bound('waiting'),
    uploads: bound('uploads'),
    streams: bound('streams'),
    upgrades: bound('upgrades'),
    pipelined: bound('pipelined'),
    unread_replies: bound('unread_replies'),
  };
}
