/**
 * Traefik: the middlewares rateLimit and inFlightReq, on the rules of the routers that use it. In Traefik a request
 * belongs to one router, and each router counts by itself. In a policy file every matching policy applies.
 */

import { BY_ADDRESS, byHeader, ImportError, Imported, IPV6_NOTE, type Limit, type Who } from './imported.ts';
import { isWithin } from './path-pattern.ts';
import { bareName, field, readTraefik, type TraefikConfig, type TraefikRouter } from './traefik-config.ts';
import { RuleError, type RuleRequests, readRule } from './traefik-rule.ts';
import type { Tree } from './tree.ts';

interface ReadLimit extends Limit {
  readonly who: Who;
  readonly burst: number | null;
}

interface ReadRouter extends RuleRequests {
  readonly router: TraefikRouter;
  /** Names of middlewares that limit. */
  readonly limits: readonly string[];
}

/** Middlewares that become policies. */
const KINDS = ['rateLimit', 'inFlightReq'] as const;
const COUNTS_HOSTS = 'it counts all clients of a host together; here each client is counted by itself';
const CONCURRENCY_MAX = 10_000;
const MIDDLEWARES_MAX = 1000;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** @throws ImportError if the file has no middleware */
export function importTraefik(documents: readonly Tree[]): Imported {
  const config = readTraefik(documents);
  if (config.middlewares.size === 0)
    throw new ImportError(
      'it has no middlewares of Traefik: neither http.middlewares, nor labels, nor kind: Middleware',
    );
  if (config.middlewares.size > MIDDLEWARES_MAX || config.routers.length > MIDDLEWARES_MAX)
    throw new ImportError(`it has more than ${MIDDLEWARES_MAX} routers or middlewares; split it`);
  const reading = new Reading(config);
  reading.read();
  return reading.imported;
}

class Reading {
  readonly imported = new Imported();
  readonly #config: TraefikConfig;

  constructor(config: TraefikConfig) {
    this.#config = config;
  }

  read(): void {
    const { middlewares, routers } = this.#config;
    const read = routers.flatMap((router) => this.#router(router));
    for (const [name, middleware] of middlewares) {
      const line = middleware.line;
      const kind = KINDS.find((one) => field(middleware, one).isPresent);
      if (kind === undefined) continue;
      const what = `${kind} ${name}`;
      const using = read.filter(({ limits }) => limits.includes(name));
      const options = field(middleware, kind);
      const limit = kind === 'rateLimit' ? limitOf(options) : inFlightOf(options);
      if (typeof limit === 'string') this.imported.refuse({ line }, what, limit);
      else if (using.length === 0) this.#everywhere(name, what, line, limit, routers);
      else for (const router of using) this.#rows(name, what, line, limit, router, read);
    }
  }

  #router(router: TraefikRouter): ReadRouter[] {
    const limits = this.#limitsOf(router.middlewares, 0);
    try {
      return [{ ...readRule(router.rule), router, limits }];
    } catch (error) {
      if (!(error instanceof RuleError)) throw error;
      if (limits.length > 0) this.imported.refuse(router, `router ${router.name}`, error.message);
      return [];
    }
  }

  /** Follows chains of middlewares. */
  #limitsOf(names: readonly string[], depth: number): string[] {
    return names.flatMap((name) => {
      const middleware = this.#config.middlewares.get(name);
      if (middleware === undefined || depth > 8) return [];
      if (KINDS.some((kind) => field(middleware, kind).isPresent)) return [name];
      const chained = field(middleware, 'chain', 'middlewares');
      const inner = chained.items().length > 0 ? chained.items() : (chained.text ?? '').split(',');
      return this.#limitsOf(
        inner.map((one) => bareName(typeof one === 'string' ? one : (one.text ?? one.at('name').text ?? ''))),
        depth + 1,
      );
    });
  }

  #rows(
    name: string,
    what: string,
    line: number,
    { notes, ...limit }: ReadLimit,
    using: ReadRouter,
    all: readonly ReadRouter[],
  ): void {
    const { router, sets } = using;
    for (const { methods, path } of sets) {
      const within = all.filter(
        (other) =>
          other !== using &&
          !other.limits.includes(name) &&
          other.sets.every((set) => set.path !== path && isWithin(set.path, path)),
      );
      this.imported.add({
        ...limit,
        hint: name === router.name ? name : `${name}-${router.name}`,
        methods,
        path,
        group: sets.length > 1 ? `${name}-${router.name}` : null,
        source: { line, what: `${what} of router ${router.name}` },
        notes: [
          ...notes,
          ...using.notes,
          ...within.map(
            (other) =>
              `counts router ${other.router.name} of line ${other.router.line} too, which Traefik does not`,
          ),
        ],
      });
    }
  }

  /** Routers are often in another file, so the limit is imported for every path. */
  #everywhere(
    name: string,
    what: string,
    line: number,
    { notes, ...limit }: ReadLimit,
    routers: readonly TraefikRouter[],
  ): void {
    if (routers.some(({ middlewares }) => this.#limitsOf(middlewares, 0).includes(name))) {
      this.imported.refuse({ line }, what, 'no rule of a router that uses it can be carried over');
      return;
    }
    const note = 'no router of this file uses it, so it applies to every path: write its route';
    const source = { line, what };
    this.imported.add({
      ...limit,
      hint: name,
      source,
      notes: [...notes, note],
    });
  }
}

/** @returns the limit, or the reason why there is none */
function limitOf(options: Tree): ReadLimit | string {
  const average = field(options, 'average').number ?? 0;
  if (average === 0) return 'average 0 limits nothing';
  if (!Number.isSafeInteger(average) || average < 1) return `average ${average} is not a whole number`;
  const period = field(options, 'period').text ?? '1s';
  const periodMs = durationMs(period);
  if (periodMs === null || !Number.isInteger(periodMs) || periodMs < 1)
    return `the period ${period} is not a whole number of milliseconds`;
  const burst = field(options, 'burst').number ?? 1;
  if (!Number.isSafeInteger(burst) || burst < 1) return `with a burst of ${burst} nothing passes`;
  // Express the same rate in whole seconds.
  const times = 1000 / divisorOf(periodMs, 1000);
  const notes: string[] = [];
  const who = whoOf(field(options, 'sourceCriterion'), notes);
  if (typeof who === 'string') return who;
  return { who, limit: average * times, windowSeconds: (periodMs * times) / 1000, burst, notes };
}

/** @returns the limit of requests in flight, or the reason why there is none */
function inFlightOf(options: Tree): ReadLimit | string {
  const amount = field(options, 'amount').number ?? 0;
  if (!Number.isSafeInteger(amount) || amount < 1 || amount > CONCURRENCY_MAX)
    return `amount is ${amount}; concurrency is from 1 to ${CONCURRENCY_MAX}`;
  const criterion = field(options, 'sourceCriterion');
  if (!criterion.isPresent) return `without sourceCriterion ${COUNTS_HOSTS}`;
  const notes: string[] = [];
  const who = whoOf(criterion, notes);
  return typeof who === 'string' ? who : { who, limit: amount, windowSeconds: 0, burst: null, notes };
}

/** Returns the greatest common divisor. */
function divisorOf(a: number, b: number): number {
  return b === 0 ? a : divisorOf(b, a % b);
}

function whoOf(criterion: Tree, notes: string[]): Who | string {
  const header = field(criterion, 'requestHeaderName').text;
  if (header !== null) return byHeader(header);
  if (field(criterion, 'requestHost').isTrue) return COUNTS_HOSTS;
  const strategy = field(criterion, 'ipStrategy');
  const depth = field(strategy, 'depth').number ?? 0;
  if (depth > 0) notes.push(`ipStrategy.depth: set GATEWAY_TRUSTED_PROXIES=${depth}`);
  const excluded = field(strategy, 'excludedIPs');
  const ranges =
    excluded.items().length > 0 ? excluded.texts() : (excluded.text ?? '').split(',').filter(Boolean);
  if (ranges.length > 0)
    notes.push(`ipStrategy.excludedIPs: set GATEWAY_TRUSTED_PROXIES=${ranges.join(',')}`);
  const subnet = field(strategy, 'ipv6Subnet').number;
  if (subnet !== 64)
    notes.push(subnet === null ? IPV6_NOTE : `with IPv6, a /64 network is one client, not a /${subnet}`);
  return BY_ADDRESS;
}

/** @param text such as 1m30s, or seconds */
function durationMs(text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) return null;
  let sum = 0;
  for (const [, count, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    sum += Number(count) * (UNIT_MS[unit] ?? 0);
  return sum;
}
