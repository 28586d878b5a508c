/**
 * Proposes limits for the requests of logs. It groups paths into routes, counts requests for each client and window,
 * and computes how many clients each of some limits would have denied.
 */
import { canonicalTarget } from '#gateway/policy/target.ts';
import type { LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { LogFiles } from '#gateway/workbench/replay/log-files.ts';
import { TimeOrder } from '#gateway/workbench/replay/time-order.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import { type Candidate, candidatesOf, suggestedLimit } from './candidates.ts';
import { Frequencies } from './frequencies.ts';
import { Peaks } from './peaks.ts';
import { RouteTree } from './route-tree.ts';
import { type Sender, Senders } from './senders.ts';

interface SuggestOptions {
  readonly logs: LogFiles;
  readonly trust: ProxyTrust;
  readonly windowSeconds: Seconds;
  /** Lower-case name of the header field that presents a key. */
  readonly keyHeader: string;
  /** Maximum number of reported routes, the busiest first. */
  readonly routesMax: number;
}

export interface SuggestedRoute {
  readonly route: string;
  readonly identifier: string;
  readonly requests: number;
  /** Number of different clients. */
  readonly identities: number;
  /** Median of the requests of one client in one window, over all windows with requests. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly candidates: readonly Candidate[];
  /** Twice p99, rounded up, to leave room for exceptions. */
  readonly suggested: Candidate;
}

export interface Suggestions {
  readonly from: string | null;
  readonly to: string | null;
  readonly requests: number;
  /** Requests whose sender is not in the log. */
  readonly unknown: number;
  readonly windowSeconds: Seconds;
  readonly routes: readonly SuggestedRoute[];
  /** Requests on routes that are not reported. */
  readonly others: number;
  /** Inverse of the sampling rate: one of this number of clients was followed. */
  readonly oneIn: number;
}

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

/** Number of requests that are read to learn the routes before the first is counted. */
const LEARNED = 20_000;
const IDENTIFIERS_MAX = 16;

export class Suggest {
  readonly #options: SuggestOptions;
  readonly #senders: Senders;
  readonly #tree = new RouteTree();
  readonly #identifiers: string[] = [];
  readonly #rows = new Map<number, Row>();
  readonly #peaks: Peaks;
  #learning: Noted[] | null = [];
  #firstAt: Millis | null = null;
  #lastAt: Millis = 0;
  #requests = 0;
  #unknown = 0;

  constructor(options: SuggestOptions) {
    this.#options = options;
    this.#senders = new Senders(options.trust, options.keyHeader);
    this.#peaks = new Peaks({
      windowMs: options.windowSeconds * 1000,
      onWindow: (row, requests) => this.#rows.get(row)?.windows.add(requests),
    });
  }

  /** @throws UnknownFormatError, or the error of a file that cannot be read */
  async run(): Promise<Suggestions> {
    const order = new TimeOrder((request, at) => this.#take(request, at));
    await this.#options.logs.each((line) => order.add(line));
    order.end();
    this.#endLearning();
    this.#peaks.end((row, most) => this.#rows.get(row)?.most.add(most));
    return this.#result();
  }

  #take(request: LoggedRequest, at: Millis): void {
    this.#firstAt ??= at;
    this.#lastAt = at;
    this.#requests++;
    // Preflight requests of browsers are never limited.
    if (request.method === null || request.method === 'OPTIONS') return;
    const target = canonicalTarget(request.target);
    if (!target.ok || request.digests?.decision === 'malformed') return;
    const sender = this.#senders.of(request);
    if (sender === null) {
      this.#unknown++;
      return;
    }
    const noted = {
      at,
      method: request.method === 'HEAD' ? 'GET' : request.method,
      path: target.path,
      sender,
    };
    if (this.#learning === null) {
      this.#count(noted);
      return;
    }
    this.#tree.learn(target.path);
    this.#learning.push(noted);
    if (this.#learning.length >= LEARNED) this.#endLearning();
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
        row = {
          route,
          identifier,
          requests: 0,
          windows: new Frequencies(),
          most: new Frequencies(),
        };
        this.#rows.set(number, row);
      }
      row.requests++;
      this.#peaks.add(number, identity.words, at);
    }
  }

  /** All identifiers beyond the last number share it. */
  #numberOf(identifier: string): number {
    const known = this.#identifiers.indexOf(identifier);
    if (known >= 0) return known;
    if (this.#identifiers.length >= IDENTIFIERS_MAX) return IDENTIFIERS_MAX - 1;
    return this.#identifiers.push(identifier) - 1;
  }

  #result(): Suggestions {
    const { routesMax, windowSeconds } = this.#options;
    const rows = [...this.#rows.values()].sort((a, b) => b.requests - a.requests || a.route - b.route);
    return {
      from: this.#firstAt === null ? null : new Date(this.#firstAt).toISOString(),
      to: this.#firstAt === null ? null : new Date(this.#lastAt).toISOString(),
      requests: this.#requests,
      unknown: this.#unknown,
      windowSeconds,
      routes: rows.slice(0, routesMax).map((row) => this.#suggestionOf(row)),
      others: rows.slice(routesMax).reduce((sum, { requests }) => sum + requests, 0),
      oneIn: this.#peaks.oneIn,
    };
  }

  #suggestionOf({ route, identifier, requests, windows, most }: Row): SuggestedRoute {
    const { oneIn } = this.#peaks;
    const [p50 = 0, p95 = 0, p99 = 0] = windows.percentiles([0.5, 0.95, 0.99]);
    const { max } = windows;
    const limit = suggestedLimit(p99);
    return {
      route: this.#tree.texts[route] ?? '',
      identifier,
      requests,
      identities: most.total * oneIn,
      p50,
      p95,
      p99,
      max,
      candidates: candidatesOf({ p95, p99, max }, most, oneIn),
      suggested: { limit, identitiesDenied: most.above(limit) * oneIn },
    };
  }
}
