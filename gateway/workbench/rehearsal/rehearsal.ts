/**
 * Finds out what the gateway would decide. It uses the live loader, matcher, identities, limiter and replies, with
 * counters in memory and its own clock, without a socket or an upstream. `explain`, the tests of a policy file and
 * `replay` use it, so they always agree with the gateway.
 */

import type { Priority } from '#gateway/bounds/priority.ts';
import { prefersHtml } from '#gateway/http/accept.ts';
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import { Origins, type PeerSocket } from '#gateway/http/request-origin.ts';
import { announcedBody, BODY_BYTES_MAX, type SentBody, TOO_LARGE } from '#gateway/identity/body-field.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import { isPresented } from '#gateway/identity/identifier.ts';
import { chargeFor } from '#gateway/limiter/charge.ts';
import { decide } from '#gateway/limiter/decision.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import { type Ending, outcomesOf } from '#gateway/limiter/outcome.ts';
import { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { Bans } from '#gateway/operate/control/bans.ts';
import type { CoverCounter } from '#gateway/policy/counter.ts';
import { entryFor } from '#gateway/policy/lists.ts';
import type { Cover } from '#gateway/policy/match.ts';
import { planIn } from '#gateway/policy/plans.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Page } from '#gateway/reply/page.ts';
import { identitiesOf, listingOf } from '#gateway/request/bans-and-lists.ts';
import { Enforcement } from '#gateway/request/enforcement.ts';
import type { ChargedTo } from '#gateway/request/reading/charged-to.ts';
import { learn } from '#gateway/request/reading/prove.ts';
import { chargeOf, type Spender } from '#gateway/request/spend.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import {
  listedRequest,
  malformed,
  type ReadRequest,
  type Rehearsed,
  tell,
  type Weighed,
  type WeighedRequest,
} from './rehearsed.ts';

interface RehearsalOptions {
  /** Milliseconds since the epoch. Windows follow it. */
  readonly clock: Clock;
  /** Trusted proxies. Default: none. */
  readonly trust?: ProxyTrust;
  /** Salt of the digests. Use the gateway's to get the same digests. */
  readonly salt?: string;
  /** Maximum number of remembered counters, a power of two; 40 bytes each. The default is enough for one client. */
  readonly countersMax?: number;
  /** Maximum number of remembered credentials, a power of two; 40 bytes each. */
  readonly credentialsMax?: number;
}

const ONE_CLIENT_MAX = 1024;
const NO_TRUST: ProxyTrust = { kind: 'none' };

export interface RehearsedRequest {
  readonly method: string;
  readonly target: string;
  /** Alternating names and values. A Host field is added if there is none. */
  readonly rawHeaders: readonly string[];
  /** The connection of the request, with its address. */
  readonly socket: PeerSocket;
  /** The body of the request; undefined if it is unknown. */
  readonly body?: string | undefined;
  /** The client's plan, as a trusted proxy would send it. */
  readonly plan?: string | undefined;
}

/** Identities of a request in a log of the gateway, which has digests only. */
export interface KnownIdentities {
  /** One entry for each of `Cover.identifiers`, in the same order. null if the request does not present it. */
  readonly identities: readonly (Identity | null)[];
  /** Digest of the client's address. */
  readonly address: () => Identity;
  /** Whether this credential is also charged to the address. */
  readonly isUnproven: (credential: Identity) => boolean;
  /** The credential that the reply proves; null if none. */
  readonly provable: Identity | null;
}

export interface KnownClient {
  readonly plan: string | null;
  /** Digests that lists can name. */
  readonly digests: () => readonly string[];
}

export class Rehearsal {
  readonly enforcement: Enforcement;
  /** Remembered counters and proofs, initially empty. The caller can copy live ones. */
  readonly known: KnownCounters;
  /** Bans, initially empty. The caller can copy live ones. */
  readonly bans = new Bans();
  readonly #limiter: MemoryLimiter;
  readonly #asker = new Asker();
  readonly #origins: Origins;

  constructor(set: PolicySet, options: RehearsalOptions) {
    const { clock, trust = NO_TRUST, salt = '' } = options;
    const { countersMax = ONE_CLIENT_MAX, credentialsMax = ONE_CLIENT_MAX } = options;
    this.known = new KnownCounters({ countersMax, credentialsMax });
    this.#origins = new Origins(trust);
    this.#limiter = new MemoryLimiter({ clock, known: this.known });
    this.enforcement = new Enforcement(set, salt, {
      clock,
      wallClock: clock,
      limiter: this.#limiter,
      metrics: new Metrics(),
      bans: this.bans,
      offenders: null,
      trust,
      headerFilter: new HeaderFilter([]),
      onUntrustedChain: () => undefined,
    });
  }

  ask(request: RehearsedRequest): Rehearsed {
    const weighed = this.weigh(request);
    return weighed.kind === 'decided' ? tell(weighed, this.pageFor(request)) : weighed;
  }

  /** Returns the page for a browser that loads a page; null for a JSON reply. */
  pageFor({ rawHeaders }: Pick<RehearsedRequest, 'rawHeaders'>): Page | null {
    return prefersHtml(rawHeaders) ? this.enforcement.table.page : null;
  }

  weigh(request: RehearsedRequest): Weighed {
    const read = this.read(request);
    return read.kind === 'covered' ? this.#spend(read.path, read.cover, read.charged) : read;
  }

  /** @returns null if the request is malformed */
  priorityOf({ method, target }: Pick<RehearsedRequest, 'method' | 'target'>): Priority | null {
    const match = this.enforcement.table.match(method, target);
    return match.ok ? (match.cover?.priority ?? 'normal') : null;
  }

  get remembered(): number {
    return this.known.size;
  }

  /** Finds the identities of a request, without charging them. */
  read({ method, target, rawHeaders, body, socket, plan }: RehearsedRequest): ReadRequest {
    const { enforcement } = this;
    const { table } = enforcement;
    const headers = completed(rawHeaders, body ?? '');
    const origin = this.#origins.of(socket);
    const head = table.checkHead({ rawHeaders: headers, httpVersion: '1.1' }, origin);
    if (!head.ok) return malformed(head.reason);
    const match = table.match(method, target);
    if (!match.ok) return malformed(match.reason);
    const { path, cover, closedBy } = match;
    const request = {
      req: { method, rawHeaders: headers },
      head,
      target: match.target,
      caller: enforcement.callerOf(origin, head.forwardedFor),
      sentBody: body === undefined ? null : sentBodyOf(body, headers, head),
      isVouchedFor: false,
      plan,
    };
    const identities = (): Identity[] => {
      const presented = identitiesOf(request);
      return typeof presented === 'string' ? [] : [...presented.certain, ...presented.doubtful];
    };
    const listing = listingOf(enforcement, request, closedBy);
    if (listing?.kind === 'malformed') return malformed(listing.reason);
    const listed = listing?.kind === 'listed' ? listing.entry : null;
    if (listed?.list === 'deny') return listedRequest(path, listed, identities, this.pageFor({ rawHeaders }));
    const ban = listing?.kind === 'banned' ? listing.identity : null;
    const uncovered = { kind: 'uncovered', path, cover: null, allowedBy: listed, identities, ban } as const;
    if (listed !== null || cover === null) return uncovered;
    const charged = chargeOf(enforcement, cover, request);
    if (typeof charged === 'string') return malformed(charged);
    if (charged === null) return { ...uncovered, cover };
    return { kind: 'covered', path, cover, charged, identities, ban };
  }

  /**
   * Does the same with digests from a log of the gateway.
   *
   * @param sender returns the client, given the identifiers that count
   * @param known further data of the client from the log
   */
  weighKnown(
    method: string,
    target: string,
    sender: (cover: Cover) => KnownIdentities,
    { plan: known, digests }: KnownClient,
  ): Weighed {
    const match = this.enforcement.table.match(method, target);
    if (!match.ok) return malformed(match.reason);
    const { path, cover, closedBy } = match;
    const { lists, plans } = this.enforcement.policies;
    const plan = known ?? (plans === null ? null : planIn(plans, digests(), null));
    const listed =
      lists === null || lists.digests.size === 0 || closedBy !== null
        ? closedBy
        : entryFor(lists, { digests: digests(), doubtful: [], address: null, words: [] });
    if (listed?.list === 'deny') return listedRequest(path, listed, nobody, null);
    const uncovered = {
      kind: 'uncovered',
      path,
      cover: null,
      allowedBy: listed,
      identities: nobody,
      ban: null,
    } as const;
    if (listed !== null || cover === null) return uncovered;
    const { identities, address, isUnproven, provable } = sender(cover);
    const credentials: Identity[] = [];
    for (let i = 0; i < identities.length; i++) {
      const identity = identities[i] ?? null;
      const identifier = cover.identifiers[i];
      if (identity === null || identifier === undefined || !isPresented(identifier)) continue;
      credentials.push(identity);
      this.#believe(identity, isUnproven(identity));
    }
    const proofs = null;
    // A log of the gateway contains no addresses.
    const facts = cover.hasOverrides ? { address: null, plan, words: [] } : null;
    const isProven = (credential: Identity): boolean => !isUnproven(credential);
    const charge = chargeFor(cover, { identities, proofs }, address, isProven, facts, unitsKnown);
    if (charge === null) return { ...uncovered, cover };
    const identified = { identities, proofs, credentials, provable, pathValues: [] };
    return this.#spend(path, cover, { charge, identified, hasOutcomes: cover.hasOutcomes, plan });
  }

  /**
   * Settles a request by the reply, which tells whether its credential works and whether it counts.
   *
   * @param ending null if the upstream was not asked
   * @param headers of the reply, alternating names and values; null if unknown
   */
  answered(
    { charged, spent }: Pick<WeighedRequest, 'charged' | 'spent'>,
    ending: Ending,
    headers: readonly string[] | null = null,
  ): void {
    if (typeof ending === 'number') learn(this.#limiter, charged.identified, ending);
    if (charged.hasOutcomes) this.#limiter.conclude(outcomesOf(spent, 0, ending, headers));
  }

  /** Called when the request is no longer in flight. */
  ended({ spent }: Pick<WeighedRequest, 'spent'>): void {
    this.#limiter.release(spent, 0);
  }

  /** Stores what the gateway knew of a credential. */
  #believe(credential: Identity, isUnproven: boolean): void {
    if (this.#limiter.isProven(credential) !== isUnproven) return;
    if (isUnproven) this.#limiter.withdraw(credential);
    else this.#limiter.prove(credential);
  }

  #spend(path: string, cover: Cover, charged: ChargedTo): WeighedRequest {
    const asker = this.#asker;
    this.#limiter.spend(charged.charge, asker);
    const { spent } = asker;
    if (spent === null) throw new Error('memory answers at once');
    return { kind: 'decided', path, cover, charged, spent, decision: decide(spent, 0) };
  }
}

const nobody = (): readonly Identity[] => [];

/** Returns the cost without header fields and lengths, which a log does not have. */
function unitsKnown({ cost }: CoverCounter): number {
  if (cost.kind === 'reply-header') return cost.reserve;
  return cost.kind === 'units' ? cost.units : 1;
}

/** Receives the answer of a limiter that answers at once. */
class Asker implements Pick<Spender, 'onSpent' | 'onStoreUnavailable'> {
  spent: Spent | null = null;

  onSpent(spent: Spent): void {
    this.spent = spent;
  }

  onStoreUnavailable(): void {
    this.spent = null;
  }
}

function hasField(rawHeaders: readonly string[], lower: string): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === lower) return true;
  return false;
}

/** Adds the fields that every client sends. */
function completed(rawHeaders: readonly string[], body: string): readonly string[] {
  const headers = hasField(rawHeaders, 'host') ? rawHeaders : [...rawHeaders, 'Host', 'localhost'];
  if (body === '') return headers;
  const added: string[] = [];
  const type = body.trimStart().startsWith('{') ? 'application/json' : 'application/x-www-form-urlencoded';
  if (!hasField(headers, 'content-type')) added.push('Content-Type', type);
  if (!hasField(headers, 'content-length') && !hasField(headers, 'transfer-encoding'))
    added.push('Content-Length', String(Buffer.byteLength(body)));
  return [...headers, ...added];
}

function sentBodyOf(body: string, rawHeaders: readonly string[], head: CheckedHead): SentBody {
  const announced = announcedBody(rawHeaders, head);
  if (announced.kind !== 'announced') return announced;
  const bytes = Buffer.from(body);
  return bytes.length > BODY_BYTES_MAX ? TOO_LARGE : { kind: announced.format, bytes };
}
