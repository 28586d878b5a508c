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

/** Who sent a request: a key if the log has one, otherwise an address. */
type Sender = readonly [identifier: string, digest: string];

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
  /** How many windows of a client had so many requests. */
  readonly windows: Map<number, number>;
  /** By digest. */
  readonly clients: Map<string, Use>;
}

const WINDOW_MS: Millis = 60_000;
/** Number of reported routes, the busiest first. */
const SHOWN_MAX = 50;
const ROWS_MAX = 2000;
/** Maximum number of clients, each counted once for each of its routes; about 150 bytes each. */
export const USES_MAX = 524_288;
/** One client in a thousand may be above the limit. */
const BELOW_LIMIT = 0.999;
/** Number of different segments at one place beyond which they count as names of users, files or articles. */
const LITERALS_MAX = 64;
/** The end of a deeper path becomes one segment. */
const DEPTH_MAX = 12;
/** Numbers, UUIDs, hexadecimal ids, and long segments with letters and digits. */
const ID = /^(?:\d+|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?=.*\d)(?:[0-9a-f]{8,}|[\w~.-]{16,}))$/i;
/** Words and years, as in an article's title. Not an id. */
const SLUG = /^(?:[a-z]+|\d+)(?:[-_](?:[a-z]+|\d+)){2,}$/i;
const UUID_LENGTH = 36;

export class RouteUse {
  readonly #credentials: readonly CredentialIdentifier[];
  readonly #digester = new Digester('');
  readonly #rows = new Map<string, Row>();
  /** Different segments by the route before them; null if there are too many. */
  readonly #literals = new Map<string, Set<string> | null>();
  readonly #usesMax: number;
  #uses = 0;
  /** Whether there were more clients than are followed. The later ones are not counted. */
  isFull = false;

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
    const [identifier, digest] = sender;
    const route = `${request.method === 'HEAD' ? 'GET' : request.method} ${this.#routeOf(target.path)}`;
    const key = `${route} ${identifier}`;
    let row = this.#rows.get(key);
    if (row === undefined) {
      if (this.#rows.size === ROWS_MAX) return;
      row = { route, identifier, requests: 0, windows: new Map(), clients: new Map() };
      this.#rows.set(key, row);
    }
    row.requests++;
    const window = Math.floor(at / WINDOW_MS);
    const use = row.clients.get(digest) ?? this.#follow(row, digest, window);
    if (use === null) return;
    if (use.window !== window) endWindow(row, use);
    use.window = window;
    use.count++;
  }

  /** Returns the busiest routes. Call it once, after the last request. */
  end() {
    return [...this.#rows.values()]
      .sort((a, b) => b.requests - a.requests)
      .slice(0, SHOWN_MAX)
      .map(usedRoute);
  }

  #follow({ clients }: Row, digest: string, window: number): Use | null {
    this.isFull ||= this.#uses === this.#usesMax;
    if (this.isFull) return null;
    this.#uses++;
    const use = { window, count: 0, most: 0 };
    clients.set(digest, use);
    return use;
  }

  #routeOf(path: string): string {
    const segments = path.slice(1).split('/');
    let route = '';
    for (const segment of segments.slice(0, segments.length > DEPTH_MAX ? DEPTH_MAX - 1 : DEPTH_MAX))
      route += isId(segment) || this.#isName(route, segment) ? '/{id}' : `/${segment}`;
    return segments.length > DEPTH_MAX ? `${route}/{rest*}` : route;
  }

  /** Whether the segment is one of many at its place. */
  #isName(place: string, segment: string): boolean {
    let known = this.#literals.get(place);
    if (known === undefined) {
      if (this.#literals.size === ROWS_MAX) return true;
      known = new Set();
      this.#literals.set(place, known);
    }
    known?.add(segment);
    if (known !== null && known.size <= LITERALS_MAX) return false;
    this.#literals.set(place, null);
    return true;
  }

  /** @returns null if the line does not have it */
  #senderOf({ digests, sender, target }: LoggedRequest, { weighed }: Judged): Sender | null {
    if (digests !== null) {
      const { identities, address } = digests;
      const key = [...identities].find(([, digest]) => digest !== address);
      return key ?? (address === null ? null : ['ip', address]);
    }
    for (const identifier of this.#credentials) {
      const [value, another] = presentedValues(sender?.headers ?? [], identifier.sources, target);
      if (value === undefined || another !== undefined) continue;
      return [identifier.name, this.#digester.identify(identifier, value).digest];
    }
    if (weighed.kind === 'malformed' || weighed.kind === 'logged-ban') return null;
    const { caller } = weighed.request;
    // Many clients may be behind an unreadable chain, so no limit can be derived from it.
    return caller.address.bytes === null ? null : ['ip', caller.identity().digest];
  }
}

/** Whether this segment identifies one object of many. */
export function isId(segment: string): boolean {
  return ID.test(segment) && (segment.length === UUID_LENGTH || !SLUG.test(segment));
}

function endWindow({ windows }: Row, use: Use): void {
  windows.set(use.count, (windows.get(use.count) ?? 0) + 1);
  use.most = Math.max(use.most, use.count);
  use.count = 0;
}

/** All numbers of requests are those of one client in one minute. */
function usedRoute(row: Row) {
  const { route, identifier, requests, windows, clients } = row;
  const most = new Map<number, number>();
  for (const use of clients.values()) {
    endWindow(row, use);
    most.set(use.most, (most.get(use.most) ?? 0) + 1);
  }
  return {
    /** Method and path, such as `GET /items/{id}`. */
    route,
    identifier,
    requests,
    /** Number of different clients. */
    identities: clients.size,
    /** Median over all minutes with requests. */
    p50: percentile(windows, 0.5),
    p95: percentile(windows, 0.95),
    p99: percentile(windows, 0.99),
    max: percentile(windows, 1),
    /** The lowest limit that would have denied no more than one client in a thousand. */
    limit: percentile(most, BELOW_LIMIT),
  };
}

/** Returns the smallest value that this share of all values does not exceed. @param times how often each value occurred */
function percentile(times: ReadonlyMap<number, number>, share: number): number {
  const needed = share * times.values().reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (const [value, count] of [...times].sort(([a], [b]) => a - b)) {
    seen += count;
    if (seen >= needed) return value;
  }
  return 0;
}
