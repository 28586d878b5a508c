/**
 * The steps of every request: match, identify, spend, decide. Then it is refused (refuse.ts) or admitted. A denied
 * request costs the store nothing once its counter is known to be exhausted.
 */
import { prefersHtml } from '#gateway/http/accept.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { SentBody } from '#gateway/identity/body-field.ts';
import { type Decision, decide, type Violation } from '#gateway/limiter/decision.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { Reservation } from '#gateway/limiter/outcome.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { RefusedRequest } from '#gateway/refusals/decisions.ts';
import { type LimitRefusal, limitRefusal, type Refusal, storeRefusal } from '#gateway/refusals/refusal.ts';
import type { Cors } from '#gateway/reply/cors.ts';
import { limitHeaders } from '#gateway/reply/limit-headers.ts';
import type { Page } from '#gateway/reply/page.ts';
import type { Framing } from '#gateway/reply/refusal-reply.ts';
import type { Millis } from '#shared/clock.ts';
import { addressSource } from './address-source.ts';
import type { Enforcement } from './enforcement.ts';
import { noteOffences } from './offences.ts';
import type { Caller } from './reading/caller.ts';
import { locate, NOWHERE, type ReadableRequest, read, type Sent } from './reading/read.ts';
import type { Banned, ChargedTo, KnownAs } from './reading/reading.ts';
import type { Refusable, Refusals } from './refuse.ts';
import { countDegraded, countVisitor, type Spender, spend } from './spend.ts';

const NOTHING_ADDED: readonly string[] = [];

type Allowed = Extract<Decision, { kind: 'allow' }>;

export interface LimitedParts {
  readonly enforcement: Enforcement;
  readonly refusals: Refusals;
}

/** The connection of a request. */
interface Source {
  readonly origin: RequestOrigin;
}

export abstract class LimitedRequest implements ReadableRequest, Spender, Refusable {
  abstract readonly req: Sent;
  abstract readonly connection: Source;
  abstract readonly entry: AccessEntry | null;
  abstract readonly closes: boolean;
  head = NOWHERE.head;
  match = NOWHERE.match;
  host = NOWHERE.host;
  sentBody: SentBody | null = null;
  charged: ChargedTo | null = null;
  /** The identities whose proof depends on the reply; null if no policy covers the request. */
  identified: KnownAs | null = null;
  arrivedAt: Millis = 0;
  /** Time that passed before the body was there. It is no part of the time of the decision. */
  bodyMs: Millis = 0;
  /** Whether the client is a newcomer for a policy with `newcomers` that acts. */
  isNewcomer = false;
  /** The value of OVER_HEADER for the application; null if no policy marks the request. */
  over: string | null = null;
  readonly #parts: LimitedParts;
  #caller: Caller | null = null;
  /** Time at which the charge was passed to the limiter. */
  #askedAt: Millis = 0;
  /** Whether the gateway has answered the request, or the client has left. */
  #isDone = false;

  constructor(parts: LimitedParts) {
    this.#parts = parts;
  }

  /**
   * Lets an admitted request pass.
   *
   * @param added the gateway's headers for the reply, alternating names and values
   * @param reservation null if the charge does not depend on the reply, and no policy counts requests in flight
   */
  protected abstract pass(added: readonly string[], reservation: Reservation | null, now: Millis): void;

  abstract answer(refusal: Refusal, framing: Framing): void;

  /** Reads the body of a request whose policies count a field of it. Never calls back if the client leaves. */
  protected receiveBody(then: (body: SentBody) => void): void {
    then({ kind: 'absent' });
  }

  /** Answers a probe of `floodgate doctor`. @returns false if the token is invalid, so the request is not a probe */
  protected abstract answersProbe(token: string): boolean;

  answersPreflight(_framing: Framing): boolean {
    return false;
  }

  get isVouchedFor(): boolean {
    return false;
  }

  get cors(): Cors {
    const { req, match } = this;
    const { cors } = this.#parts.enforcement.table;
    if (match === NOWHERE.match) return cors.unread(req.rawHeaders);
    return cors.on(req.method ?? '', match.path, req.rawHeaders);
  }

  get page(): Page | null {
    return prefersHtml(this.req.rawHeaders) ? this.#parts.enforcement.table.page : null;
  }

  /** Can be read only after the header section was checked. */
  get caller(): Caller {
    this.#caller ??= this.#parts.enforcement.callerOf(this.connection.origin, this.head.forwardedFor);
    return this.#caller;
  }

  run(): void {
    const { req } = this;
    const { enforcement, refusals } = this.#parts;
    this.arrivedAt = this.#now;
    const located = locate(enforcement.table, req, this.connection.origin);
    if (located.kind === 'malformed') {
      refusals.refuse(this, located);
      return;
    }
    const { head, match } = located;
    this.head = head;
    if (head.probe !== null && this.answersProbe(head.probe)) {
      this.#isDone = true;
      return;
    }
    const { path, cover } = match;
    this.match = match;
    this.host = located.host;
    enforcement.metrics.requested(path, this.arrivedAt);
    this.entry?.matched(path, cover);
    enforcement.located(match, located.host, this.arrivedAt);
    this.#decide(true);
  }

  /** @param mayAsk whether to ask the store if a ban depends on proofs that this process does not know */
  #decide(mayAsk: boolean): void {
    const { enforcement, refusals } = this.#parts;
    const reading = read(this, enforcement.options);
    switch (reading.kind) {
      case 'malformed':
      case 'listed':
        refusals.refuse(this, reading);
        return;
      case 'banned':
        if (!mayAsk || !this.#asksProofs(reading))
          refusals.refuse(this, { ...reading, leftMs: reading.endsAt - this.#now });
        return;
      case 'uncovered':
        if (reading.allowedBy !== null) {
          enforcement.metrics.listed.allow++;
          this.#passUncounted();
        } else if (this.#lacksBody) this.#readBody();
        else this.#charge(null, reading.identified);
        return;
      case 'charged':
        // If another policy is known to deny the request, it is denied before its body is read.
        if (this.#lacksBody && !enforcement.options.limiter.surelyDenies(reading.charge)) this.#readBody();
        else this.#charge(reading, reading.identified);
        return;
      default:
        reading satisfies never;
    }
  }

  /** @returns false if the store cannot be asked, or this process knows the proofs */
  #asksProofs({ unlessProven }: Banned): boolean {
    if (unlessProven.length === 0) return false;
    const { options, metrics } = this.#parts.enforcement;
    const asked = options.limiter.askProofs(unlessProven);
    if (asked === null) return false;
    void asked.then(() => {
      // The client may have left meanwhile. Nothing would release the resources that its request takes now.
      if (this.#isDone) metrics.count('undecided');
      else this.#decide(false);
    });
    return true;
  }

  get #lacksBody(): boolean {
    return this.sentBody === null && this.match.cover?.readsBody === true;
  }

  #readBody(): void {
    this.receiveBody((body) => {
      if (this.#isDone) return;
      this.sentBody = body;
      if (body.kind === 'unread') this.#parts.enforcement.metrics.unreadBodies++;
      this.bodyMs = this.#now - this.arrivedAt;
      this.#decide(true);
    });
  }

  #charge(charged: ChargedTo | null, identified: KnownAs | null): void {
    const { enforcement } = this.#parts;
    this.charged = charged;
    this.identified = identified;
    this.entry?.charged(charged, identified, this.caller.identity());
    if (charged === null) {
      this.#countVisitor(null);
      this.#passUncounted();
      return;
    }
    this.#askedAt = this.#now;
    spend(enforcement, charged, this);
  }

  onSpent(spent: Spent, position: number): void {
    const { entry } = this;
    const { enforcement } = this.#parts;
    const { metrics } = enforcement;
    entry?.spent(spent);
    if (!spent.isLocal) {
      const storeMs = this.#now - this.#askedAt;
      metrics.storeAnswered(storeMs);
      if (entry !== null) entry.storeMs = storeMs;
    } else countDegraded(enforcement, this);
    const decision = decide(spent, position);
    switch (decision.kind) {
      case 'allow':
        metrics.count('allowed');
        this.#countPolicies(spent, decision);
        if (decision.shadowDenials.some(({ regulars }) => regulars !== null))
          metrics.newcomersDenied.shadow++;
        if (decision.shadowDenials.length > 0 && !spent.isLocal)
          noteOffences(enforcement, this, decision.shadowDenials);
        if (decision.marks.length > 0) this.#mark(decision.marks);
        this.#countVisitor(spent);
        if (entry !== null) {
          entry.decision = 'allow';
          entry.policy = decision.verdicts[0]?.policy.name ?? null;
        }
        this.#pass(limitHeaders(decision.verdicts), this.#reservationOf(spent, position));
        return;
      case 'deny':
        this.#deny(decision.violated, spent.isLocal ? 'share' : 'store');
        return;
      default:
        decision satisfies never;
    }
  }

  /** Counts an admitted request once for each policy that has counted it. */
  #countPolicies({ buckets, states }: Spent, { shadowDenials, marks }: Allowed): void {
    const { metrics } = this.#parts.enforcement;
    for (let i = 0; i < buckets.length; i++) {
      const bucket = buckets[i];
      if (bucket === undefined || bucket.counter.forUnproven || states[i] === null) continue;
      const { policy } = bucket;
      const over = marks.includes(policy) ? 'marked' : 'allowed';
      metrics.countPolicy(policy, shadowDenials.includes(policy) ? 'shadowDenied' : over);
    }
  }

  #countVisitor(spent: Spent | null): void {
    const { cover } = this.match;
    if (cover !== null && cover.regulars !== null)
      this.isNewcomer = countVisitor(this.#parts.enforcement, cover, this.charged, spent);
  }

  #mark(policies: readonly Policy[]): void {
    const names = policies.map(({ name }) => name);
    this.over = names.join(', ');
    if (this.entry !== null) this.entry.marked = names;
  }

  denyFromMemory(violated: readonly Violation[]): void {
    this.#deny(violated, 'memory');
  }

  #deny(violated: readonly Violation[], by: LimitRefusal['by']): void {
    const { enforcement, refusals } = this.#parts;
    const buckets = this.charged?.charge.buckets ?? [];
    refusals.refuse(this, limitRefusal(violated, buckets, by, enforcement.options.randomInt));
  }

  onStoreUnavailable(): void {
    this.entry?.spent(null);
    this.#parts.refusals.refuse(this, storeRefusal(this.charged?.charge.buckets ?? []));
  }

  #reservationOf(spent: Spent, position: number): Reservation | null {
    if (this.charged?.hasOutcomes !== true && spent.leases === null) return null;
    const { enforcement } = this.#parts;
    return new Reservation(enforcement.options.limiter, spent, position, (outcomes) =>
      enforcement.settled(outcomes),
    );
  }

  #passUncounted(): void {
    this.#parts.enforcement.metrics.count('uncovered');
    if (this.entry !== null) this.entry.decision = 'uncovered';
    this.#pass(NOTHING_ADDED, null);
  }

  #pass(added: readonly string[], reservation: Reservation | null): void {
    const now = this.#now;
    const { metrics } = this.#parts.enforcement;
    metrics.decided(now - this.arrivedAt - this.bodyMs);
    if (!metrics.limited.isEmpty) this.#noteAdmitted();
    if (this.#isDone) reservation?.close();
    else this.pass(added, reservation, now);
  }

  /** Counts that clients who were denied before have passed. */
  #noteAdmitted(): void {
    const { limited } = this.#parts.enforcement.metrics;
    const digests = new Set([this.caller.identity().digest]);
    for (const { identity } of this.charged?.charge.buckets ?? []) digests.add(identity.digest);
    for (const digest of digests) limited.countOther(digest);
  }

  get #now(): Millis {
    return this.#parts.enforcement.options.clock();
  }

  describe(): RefusedRequest {
    const { policies, options } = this.#parts.enforcement;
    return {
      method: this.req.method ?? '',
      target: this.match.target,
      addressFrom: addressSource(this.caller, options.trust),
      file: policies.file,
    };
  }

  finish(): boolean {
    if (this.#isDone) return false;
    this.#isDone = true;
    return true;
  }

  protected get isDone(): boolean {
    return this.#isDone;
  }
}
