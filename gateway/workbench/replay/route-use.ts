/**
 * Shows how clients use each route of a log. It groups paths into routes, and counts the requests of each client in
 * windows of a minute, whether or not a policy covers them.
 */
import { presentedValues } from '#gateway/identity/credential.ts';
import { Digester } from '#gateway/identity/digest.ts';
import type { CredentialIdentifier } from '#gateway/identity/identifier.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { readTarget } from '#gateway/policy/target.ts';
import type { Millis } from '#shared/clock.ts';
import type { LoggedRequest } from './formats/logged-request.ts';
import type { Judged } from './judge.ts';
import { RoutePatterns } from './route-patterns.ts';

/** Who sent a request: a key if the log has one, otherwise an address. */
interface Sender {
  /** Name of the identifier. */
  readonly identifier: string;
  readonly digest: string;
}

interface Noted {
  readonly at: Millis;
  readonly method: string;
  readonly path: string;
  readonly sender: Sender;
}

/** The requests of a client on a route. */
interface Use {
  window: number;
  /** Number of requests in the window. */
  count: number;
  /** The maximum of the earlier windows. */
  most: number;
}

interface Row {
  readonly route: string;
  readonly identifier: string;
  requests: number;
  readonly windows: Frequencies;
  /** By digest. */
  readonly clients: Map<string, Use>;
}

const WINDOW_MS: Millis = 60_000;
/** Number of reported routes, the busiest first. */
const SHOWN_MAX = 50;
const ROWS_MAX = 2000;
/** Maximum number of clients, each counted once for each of its routes; about 150 bytes each. */
export const USES_MAX = 524_288;
/** Number of requests that are read to learn the routes before the first is counted. */
const LEARNED = 20_000;
/** One client in a thousand may be above the limit. */
const BELOW_LIMIT = 0.999;

export class RouteUse {
  readonly #credentials: readonly CredentialIdentifier[];
  readonly #digester = new Digester('');
  readonly #patterns = new RoutePatterns();
  readonly #rows = new Map<string, Row>();
  readonly #usesMax: number;
  #uses = 0;
  /** Whether there were more clients than are followed. The later ones are not counted. */
  isFull = false;
  #learning: Noted[] | null = [];

  /** @param set its identifiers say which header fields present a key */
  constructor(set: PolicySet, usesMax = USES_MAX) {
    this.#credentials = set.identifiers.filter((identifier) => identifier.kind === 'credential');
    this.#usesMax = usesMax;
  }

  /** Adds a request. Times must not decrease. */
  add(request: LoggedRequest, judged: Judged, at: Millis): void {
    // Preflight requests of browsers are never limited.
    if (request.method === null || request.method === 'OPTIONS') return;
    const target = readTarget(request.target);
    const sender = this.#senderOf(request, judged);
    if (!target.ok || sender === null) return;
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const noted = { at, method, path: target.path, sender };
    if (this.#learning === null) {
      this.#count(noted);
      return;
    }
    this.#patterns.of(target.path);
    this.#learning.push(noted);
    if (this.#learning.length >= LEARNED) this.#endLearning();
  }

  /** Returns the busiest routes. Call it once, after the last request. */
  end() {
    this.#endLearning();
    return [...this.#rows.values()]
      .sort((a, b) => b.requests - a.requests)
      .slice(0, SHOWN_MAX)
      .map(usedRoute);
  }

  #endLearning(): void {
    const learned = this.#learning ?? [];
    this.#learning = null;
    for (const noted of learned) this.#count(noted);
  }

  #count({ at, method, path, sender: { identifier, digest } }: Noted): void {
    const route = `${method} ${this.#patterns.of(path)}`;
    const key = `${route} ${identifier}`;
    let row = this.#rows.get(key);
    if (row === undefined) {
      if (this.#rows.size === ROWS_MAX) return;
      row = { route, identifier, requests: 0, windows: new Frequencies(), clients: new Map() };
      this.#rows.set(key, row);
    }
    row.requests++;
    const window = Math.floor(at / WINDOW_MS);
    let use = row.clients.get(digest);
    if (use === undefined) {
      this.isFull ||= this.#uses === this.#usesMax;
      if (this.isFull) return;
      this.#uses++;
      use = { window, count: 0, most: 0 };
      row.clients.set(digest, use);
    } else if (use.window !== window) {
      endWindow(row, use);
      use.window = window;
      use.count = 0;
    }
    use.count++;
  }

  /** @returns null if the line does not have it */
  #senderOf({ digests, sender, target }: LoggedRequest, { weighed }: Judged): Sender | null {
    if (digests !== null) {
      const { identities, address } = digests;
      const key = [...identities].find(([, digest]) => digest !== address);
      if (key !== undefined) return { identifier: key[0], digest: key[1] };
      return address === null ? null : { identifier: 'ip', digest: address };
    }
    for (const identifier of this.#credentials) {
      const [value, another] = presentedValues(sender?.headers ?? [], identifier.sources, target);
      if (value === undefined || another !== undefined) continue;
      const { digest } = this.#digester.identify(identifier, value);
      return { identifier: identifier.name, digest };
    }
    if (weighed.kind === 'malformed' || weighed.kind === 'logged-ban') return null;
    const { caller } = weighed.request;
    // Many clients may be behind an unreadable chain, so no limit can be derived from it.
    return caller.address.bytes === null ? null : { identifier: 'ip', digest: caller.identity().digest };
  }
}

function endWindow({ windows }: Row, use: Use): void {
  windows.add(use.count);
  use.most = Math.max(use.most, use.count);
}

/** All numbers of requests are those of one client in one minute. */
function usedRoute(row: Row) {
  const { route, identifier, requests, windows, clients } = row;
  const most = new Frequencies();
  for (const use of clients.values()) {
    endWindow(row, use);
    most.add(use.most);
  }
  const [p50 = 0, p95 = 0, p99 = 0, max = 0] = windows.percentiles([0.5, 0.95, 0.99, 1]);
  const [limit = 0] = most.percentiles([BELOW_LIMIT]);
  return {
    /** Method and path, such as `GET /items/{id}`. */
    route,
    identifier,
    requests,
    /** Number of different clients. */
    identities: clients.size,
    /** Median over all minutes with requests. */
    p50,
    p95,
    p99,
    max,
    /** The lowest limit that would have denied no more than one client in a thousand. */
    limit,
  };
}

/** How often each number occurred, for percentiles. */
export class Frequencies {
  readonly #times = new Map<number, number>();
  #total = 0;

  add(value: number): void {
    this.#times.set(value, (this.#times.get(value) ?? 0) + 1);
    this.#total++;
  }

  /**
   * @param shares ascending, from 0 to 1
   * @returns for each share, the smallest value that this share of all values does not exceed; 0 without values
   */
  percentiles(shares: readonly number[]): readonly number[] {
    const sorted = [...this.#times].sort(([a], [b]) => a - b);
    const found: number[] = [];
    let seen = 0;
    for (const [value, times] of sorted) {
      seen += times;
      while (found.length < shares.length && seen >= this.#total * (shares[found.length] ?? 1))
        found.push(value);
    }
    return shares.map((_, i) => found[i] ?? 0);
  }
}
