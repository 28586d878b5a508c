/**
 * Shows how clients use each route of a log. It groups paths into routes, and counts the requests of each client in
 * windows of a minute, whether or not a policy covers them.
 */
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { readTarget } from '#gateway/policy/target.ts';
import type { LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import { Frequencies } from './frequencies.ts';
import { Peaks } from './peaks.ts';
import { RouteTree } from './route-tree.ts';
import { type Sender, Senders } from './senders.ts';

interface Row {
  readonly route: number;
  readonly identifier: string;
  requests: number;
  readonly windows: Frequencies;
  /** Number of requests of each client in its busiest window. */
  readonly most: Frequencies;
}

interface Noted {
  readonly at: Millis;
  readonly method: string;
  readonly path: string;
  readonly sender: Sender;
}

const WINDOW_MS: Millis = 60_000;
/** Number of reported routes, the busiest first. */
const SHOWN_MAX = 50;
/** Number of requests that are read to learn the routes before the first is counted. */
const LEARNED = 20_000;
const IDENTIFIERS_MAX = 16;
/** One client in a thousand may be above the limit. */
const BELOW_LIMIT = 0.999;

export class RouteUse {
  readonly #senders: Senders;
  readonly #tree = new RouteTree();
  readonly #identifiers: string[] = [];
  readonly #rows = new Map<number, Row>();
  readonly #peaks: Peaks;
  #learning: Noted[] | null = [];

  constructor(set: PolicySet, trust: ProxyTrust) {
    this.#senders = new Senders(set, trust);
    this.#peaks = new Peaks({
      windowMs: WINDOW_MS,
      onWindow: (row, requests) => this.#rows.get(row)?.windows.add(requests),
    });
  }

  /** Adds a request. Times must not decrease. */
  add(request: LoggedRequest, at: Millis): void {
    // Preflight requests of browsers are never limited.
    if (request.method === null || request.method === 'OPTIONS') return;
    const target = readTarget(request.target);
    if (!target.ok || request.digests?.decision === 'malformed') return;
    const sender = this.#senders.of(request);
    if (sender === null) return;
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const noted = { at, method, path: target.path, sender };
    if (this.#learning === null) {
      this.#count(noted);
      return;
    }
    this.#tree.learn(target.path);
    this.#learning.push(noted);
    if (this.#learning.length >= LEARNED) this.#endLearning();
  }

  /** Returns the busiest routes. Call it once, after the last request. */
  end() {
    this.#endLearning();
    this.#peaks.end((row, most) => this.#rows.get(row)?.most.add(most));
    return [...this.#rows.values()]
      .sort((a, b) => b.requests - a.requests || a.route - b.route)
      .slice(0, SHOWN_MAX)
      .map((row) => this.#usedRoute(row));
  }

  #endLearning(): void {
    const learned = this.#learning ?? [];
    this.#learning = null;
    for (const noted of learned) this.#count(noted);
  }

  #count({ at, method, path, sender: { identifier, identity } }: Noted): void {
    for (const route of this.#tree.routesOf(method, path)) {
      const number = route * IDENTIFIERS_MAX + this.#numberOf(identifier);
      let row = this.#rows.get(number);
      if (row === undefined) {
        row = { route, identifier, requests: 0, windows: new Frequencies(), most: new Frequencies() };
        this.#rows.set(number, row);
      }
      row.requests++;
      this.#peaks.add(number, identity, at);
    }
  }

  /** All identifiers beyond the last number share it. */
  #numberOf(identifier: string): number {
    const known = this.#identifiers.indexOf(identifier);
    if (known >= 0) return known;
    if (this.#identifiers.length >= IDENTIFIERS_MAX) return IDENTIFIERS_MAX - 1;
    return this.#identifiers.push(identifier) - 1;
  }

  /** All numbers of requests are those of one client in one minute. */
  #usedRoute({ route, identifier, requests, windows, most }: Row) {
    const [p50 = 0, p95 = 0, p99 = 0] = windows.percentiles([0.5, 0.95, 0.99]);
    const [limit = 0] = most.percentiles([BELOW_LIMIT]);
    return {
      /** Method and path, such as `GET /items/{id}`. */
      route: this.#tree.texts[route] ?? '',
      identifier,
      requests,
      /** Number of different clients. It is an estimate if only a sample was followed. */
      identities: most.total * this.#peaks.oneIn,
      /** Median over all minutes with requests. */
      p50,
      p95,
      p99,
      max: windows.max,
      /** The lowest limit that would have denied no more than one client in a thousand. */
      limit,
    };
  }
}
