/**
 * Finds out what the gateway would decide. It uses the gateway's own reading of a request, limiter and replies, with
 * counters in memory and its own clock, without a socket or an upstream. `explain`, the tests of a policy file and
 * `replay` use it, so they always agree with the gateway.
 */

import { prefersHtml } from '#gateway/http/accept.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import { type PeerSocket, RequestOrigin } from '#gateway/http/request-origin.ts';
import { announcedBody, BODY_BYTES_MAX, type SentBody, TOO_LARGE } from '#gateway/identity/body-field.ts';
import { Digester, type Identity } from '#gateway/identity/digest.ts';
import { decide } from '#gateway/limiter/decision.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { LimitListener, Spent } from '#gateway/limiter/limiter.ts';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import { type Ending, outcomesOf } from '#gateway/limiter/outcome.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { Callers } from '#gateway/request/reading/caller.ts';
import { type Known, NO_BANS } from '#gateway/request/reading/listing.ts';
import { PolicyTable } from '#gateway/request/reading/policy-table.ts';
import { learn, tellGroups } from '#gateway/request/reading/prove.ts';
import { type Located, locate, type ReadableRequest, read } from '#gateway/request/reading/read.ts';
import type { ChargedTo, Malformed, Reading, Uncovered } from '#gateway/request/reading/reading.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import type { Asking, Decided, Rehearsed } from './rehearsed.ts';

interface RehearsalOptions {
  /** Milliseconds since the epoch. Windows follow it. */
  readonly clock: Clock;
  /** Trusted proxies. Default: none. */
  readonly trust?: ProxyTrust;
  /** Salt of the digests. Use the gateway's to get the same digests. */
  readonly salt?: string;
  /** Maximum number of remembered counters, and of credentials, a power of two. The default is enough for one client. */
  readonly countersMax?: number;
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

type Replied = Pick<ChargedTo | Uncovered, 'identified'> & Pick<Decided, 'request'>;

/** A request to read. */
export type LocatedRequest = ReadableRequest & Located;

export class Rehearsal {
  #table: PolicyTable;
  /** Remembered counters and proofs, initially empty. The caller can copy live ones. */
  readonly known: KnownCounters;
  readonly clock: Clock;
  readonly #limiter: MemoryLimiter;
  readonly #asker = new Asker();
  readonly #trust: ProxyTrust;
  readonly #origins = new WeakMap<PeerSocket, RequestOrigin>();
  readonly #callers: Callers;

  constructor(set: PolicySet, options: RehearsalOptions) {
    const { clock, trust = NO_TRUST, salt = '', countersMax = ONE_CLIENT_MAX } = options;
    this.clock = clock;
    this.#table = new PolicyTable(set, new Digester(salt), clock);
    this.known = new KnownCounters({ countersMax });
    this.#trust = trust;
    this.#callers = new Callers(trust, () => undefined);
    this.#limiter = new MemoryLimiter({ clock, known: this.known });
  }

  get table(): PolicyTable {
    return this.#table;
  }

  /** Replaces the policies. Counters are identified by name, so they keep their values. */
  use(set: PolicySet): void {
    this.#table = this.#table.withPolicies(set);
  }

  ask(request: RehearsedRequest): Rehearsed {
    const located = this.locate(request);
    return located.kind === 'malformed' ? located : this.spend(located);
  }

  /** Checks a request and finds its route. */
  locate(request: RehearsedRequest): LocatedRequest | Malformed {
    const { method, target, body, socket, plan } = request;
    const rawHeaders = completed(request.rawHeaders, body ?? '');
    const req = { method, url: target, rawHeaders, httpVersion: '1.1' };
    const origin = this.#origins.get(socket) ?? new RequestOrigin(socket, this.#trust);
    this.#origins.set(socket, origin);
    const located = locate(this.table, req, origin);
    if (located.kind === 'malformed') return located;
    const { head } = located;
    const caller = this.#callers.of(origin, head.forwardedFor, this.table);
    const sentBody = body === undefined ? null : sentBodyOf(body, rawHeaders, head);
    return { ...located, req, caller, sentBody, isVouchedFor: false, plan };
  }

  /** Makes the client of a request a regular, as if it had been here on enough days. */
  welcome(request: RehearsedRequest): void {
    const located = this.locate(request);
    if (located.kind !== 'malformed') this.#limiter.prove(located.caller.identity());
  }

  /** Reads a request without charging it. */
  read(request: ReadableRequest, bans: Known['bans'] = NO_BANS): Reading {
    return read(request, { bans, limiter: this.#limiter, clock: this.clock });
  }

  /** Reads a request as the gateway does before it has the body. */
  readWithoutBody(request: ReadableRequest): Reading {
    return this.read({ ...request, sentBody: null });
  }

  /** Reads a request and charges it. */
  spend(request: ReadableRequest): Rehearsed {
    const whole = this.read(request);
    const { match } = request;
    const early = whole.kind === 'malformed' ? this.readWithoutBody(request) : null;
    // The gateway denies a request before it reads the body, so nobody learns that the body is malformed.
    const reading = early?.kind === 'charged' && this.#limiter.surelyDenies(early.charge) ? early : whole;
    if (reading.kind === 'malformed') return reading;
    if (reading.kind !== 'charged') return { ...reading, match, request };
    const asker = this.#asker;
    this.#limiter.spend(reading.charge, asker);
    const { spent } = asker;
    if (spent === null) throw new Error('memory answers at once');
    const decision = decide(spent, 0);
    const charged = reading;
    return decision.kind === 'allow'
      ? { kind: 'allow', match, request, charged, spent, decision }
      : { kind: 'deny', match, request, charged, spent, decision };
  }

  /** Returns what a reply to the request depends on besides the decision. */
  askingOf({ method, rawHeaders }: Pick<RehearsedRequest, 'method' | 'rawHeaders'>): Asking {
    const { page, cors } = this.table;
    return { method, rawHeaders, page: prefersHtml(rawHeaders) ? page : null, cors };
  }

  get remembered(): number {
    return this.known.size;
  }

  /**
   * Settles a request by the reply, which tells whether its credential works and whether it counts.
   *
   * @param ending null if the upstream was not asked
   * @param headers of the reply, alternating names and values; null if unknown
   * @param sentBytes length of its body; null if unknown
   */
  answered(
    { charged, spent, request }: Decided,
    ending: Ending,
    headers: readonly string[] | null = null,
    sentBytes: number | null = null,
  ): void {
    this.learn({ identified: charged.identified, request }, ending);
    if (request.match.cover?.hasOutcomes !== true) return;
    this.#limiter.conclude(outcomesOf(spent, 0, ending, { at: 'begin', headers, isWhole: true }));
    this.#limiter.conclude(outcomesOf(spent, 0, ending, { at: 'end', sentBytes }));
  }

  /** Learns from the reply to a request whether its credential works, and that the client was here. */
  learn({ identified, request }: Replied, ending: Ending): void {
    if (typeof ending !== 'number') return;
    if (identified !== null) learn(this.#limiter, identified, ending);
    tellGroups(this.#limiter, request, ending);
  }

  /** Called when the request is no longer in flight. */
  ended({ spent }: Decided): void {
    this.#limiter.release(spent, 0);
  }

  /** Stores what the gateway knew of a credential. */
  believe(credential: Identity, isUnproven: boolean): void {
    if (this.#limiter.isProven(credential) !== isUnproven) return;
    if (isUnproven) this.#limiter.withdraw(credential);
    else this.#limiter.prove(credential);
  }
}

/** Receives the answer of a limiter that answers at once. */
class Asker implements LimitListener {
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
