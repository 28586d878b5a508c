/**
 * Notices whether the policy file in use fits the traffic, for the log, `doctor` and the page: whether it matches any
 * request, names all hosts, and lets the pages of other origins read refusals.
 */
import { isIPv4 } from 'node:net';
import type { Logger } from 'pino';
import { isClientRoute } from '#gateway/http/header-names.ts';
import { originIn } from '#gateway/http/page-origin.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Millis } from '#shared/clock.ts';

const UNMATCHED_MS: Millis = 60_000;
const PATHS_MAX = 10;
/** Clients choose the host, so only the first ones are kept. */
export const OTHER_HOSTS_MAX = 10;
/** Maximum number of hosts that are remembered as named, because a wildcard names any number of them. */
const NAMED_MAX = 100;
/** Anything but a word at the beginning of a path may be a secret or name a person, as the rest of the path may. */
const FIRST_WORD = /^\/[a-z][a-z_-]{0,30}(?=\/|$)/i;
const ANY_REQUEST = { method: 'GET', paths: [], target: '', rawHeaders: [] } as const;
const ALLOWS = 'access-control-allow-origin';

/** With several processes, each one says it of itself. `doctor` and the page know of all. */
const NOTHING_MATCHED =
  'no policy has matched any request of this process since this policy file is in use, so it limits nothing; is the policy file for this application? "npx floodgate init" writes one to begin with';
const FOREIGN_PAGES =
  'the application lets pages of other origins read its replies, but they cannot read a 429: list their origins under replies: { cors: [ORIGIN] } of the policy file, or write cors: []';

/** The requests that a process has seen since its policies are in use. */
export interface MatchReport {
  /** 'unmatched' after a minute of traffic that matched nothing, 'matched' after the first match. */
  readonly verdict: 'open' | 'matched' | 'unmatched';
  /** The beginnings of some paths that matched nothing. */
  readonly paths: readonly string[];
  /** Some hosts that no policy names, such as that of an application that was added without limits. */
  readonly otherHosts: readonly string[];
  /** Whether pages of other origins use the application, and the policy file does not have `replies: cors`. */
  readonly hasForeignPages: boolean;
}

interface TrafficOptions {
  /** Returns the policies in use. */
  readonly policies: () => PolicySet;
  /** Name of the policy file. */
  readonly file: string;
  readonly log: Pick<Logger, 'warn'>;
}

/** A request on its way to the application. */
interface Arrived {
  readonly match: Match;
  /** Canonical; empty if nothing in the policy file depends on it. */
  readonly host: string;
  readonly arrivedAt: Millis;
}

/** A request that the application has answered. */
interface Answered {
  readonly req: { readonly rawHeaders: readonly string[] };
  readonly head: Pick<CheckedHead, 'host' | 'forwardedHost'>;
  readonly match: { readonly path: string };
}

export class Traffic {
  readonly #options: TrafficOptions;
  #seen: ReturnType<typeof nothingSeen>;

  constructor(options: TrafficOptions) {
    this.#options = options;
    this.#seen = nothingSeen(options.policies());
  }

  readonly observer = {
    located: ({ match, host, arrivedAt }: Arrived): void => {
      this.#noteMatch(match, arrivedAt);
      this.#noteHost(host);
    },
    replied: (request: Answered, { headers }: { readonly headers: readonly string[] }): void => {
      const seen = this.#current;
      if (seen.set.origins !== null || seen.hasForeignPages || !isForeignPage(request, headers)) return;
      seen.hasForeignPages = true;
      this.#warn(FOREIGN_PAGES);
    },
  };

  get report(): MatchReport {
    const { verdict, paths, otherHosts, hasForeignPages } = this.#current;
    return { verdict, paths: [...paths], otherHosts: [...otherHosts], hasForeignPages };
  }

  #noteMatch({ path, cover, closedBy, excludedBy }: Match, now: Millis): void {
    const seen = this.#current;
    if (seen.verdict !== 'open') return;
    if (cover !== null || closedBy !== null || excludedBy !== null) {
      seen.verdict = 'matched';
      return;
    }
    seen.startedAt ??= now;
    if (seen.paths.size < PATHS_MAX) seen.paths.add(beginningOf(path));
    if (now - seen.startedAt < UNMATCHED_MS) return;
    seen.verdict = 'unmatched';
    this.#warn(NOTHING_MATCHED, { paths: [...seen.paths] });
  }

  /** Checks of health use addresses, and so does `doctor` itself, so they are not reported. */
  #noteHost(host: string): void {
    const { conditions, namedHosts, otherHosts } = this.#current;
    if (host === '' || conditions.length === 0 || namedHosts.has(host)) return;
    if (otherHosts.size >= OTHER_HOSTS_MAX || otherHosts.has(host)) return;
    const isNamed = conditions.some((hosts) => hosts.holds({ ...ANY_REQUEST, host }));
    if (!isNamed && !isAddress(host)) otherHosts.add(host);
    else if (namedHosts.size < NAMED_MAX) namedHosts.add(host);
  }

  #warn(text: string, more: object = {}): void {
    const { log, file } = this.#options;
    log.warn({ file, ...more }, text);
  }

  /** A reload begins anew. */
  get #current(): ReturnType<typeof nothingSeen> {
    const set = this.#options.policies();
    if (this.#seen.set !== set) this.#seen = nothingSeen(set);
    return this.#seen;
  }
}

function nothingSeen(set: PolicySet) {
  return {
    set,
    startedAt: null as Millis | null,
    verdict: 'open' as MatchReport['verdict'],
    paths: new Set<string>(),
    conditions: set.policies.map(({ hosts }) => hosts).filter((hosts) => hosts !== null),
    otherHosts: new Set<string>(),
    namedHosts: new Set<string>(),
    hasForeignPages: false,
  };
}

function beginningOf(path: string): string {
  if (path === '/') return path;
  const [word = ''] = FIRST_WORD.exec(path) ?? [];
  return word === path ? path : `${word}/*`;
}

function isAddress(host: string): boolean {
  return host === 'localhost' || host.startsWith('[') || isIPv4(host);
}

/** Returns whether the application lets a page read its reply. The request alone proves nothing: anybody can send an Origin. */
function isForeignPage({ req, head, match }: Answered, headers: readonly string[]): boolean {
  if (!allowsPages(headers) || isClientRoute(match.path)) return false;
  const [, host] = originIn(req.rawHeaders)?.split('://') ?? [];
  return host !== undefined && host !== head.host && host !== head.forwardedHost;
}

function allowsPages(headers: readonly string[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length === ALLOWS.length && name.toLowerCase() === ALLOWS) return true;
  }
  return false;
}
