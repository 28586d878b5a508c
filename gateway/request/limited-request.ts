/**
 * The steps of every request: match, identify, spend, decide. Then it is refused (refuse.ts) or admitted. A denied
 * request costs the store nothing once its counter is known to be exhausted.
 */
import type { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import { prefersHtml } from '#gateway/http/accept.ts';
import { isClientRoute } from '#gateway/http/header-names.ts';
import { EMPTY_HEAD } from '#gateway/http/request-head.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { SentBody } from '#gateway/identity/body-field.ts';
import { decide, type Violation } from '#gateway/limiter/decision.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { Reservation } from '#gateway/limiter/outcome.ts';
import type { AccessEntry } from '#gateway/observe/access-log/access-entry.ts';
import type { RefusedRequest } from '#gateway/operate/decisions/decisions.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Cover } from '#gateway/policy/match.ts';
import { denialReply } from '#gateway/reply/denial.ts';
import { limitHeaders } from '#gateway/reply/limit-headers.ts';
import type { OwnReply } from '#gateway/reply/own-reply.ts';
import type { Page } from '#gateway/reply/page.ts';
import type { Millis } from '#shared/clock.ts';
import { addressSource } from './address-source.ts';
import { type Listing, listingOf } from './bans-and-lists.ts';
import type { Enforcement } from './enforcement.ts';
import { noteOffences } from './offences.ts';
import type { Caller } from './reading/caller.ts';
import type { ChargedTo } from './reading/charged-to.ts';
import type { HeaderSection } from './reading/policy-table.ts';
import { framingOf, type Refusable, type Refusals } from './refuse.ts';
import { type ChargeableRequest, chargeOf, countDegraded, type Spender, spend } from './spend.ts';

/** Length of a path in the list of those requested most. */
const PATH_MAX = 200;
const NOTHING_ADDED: readonly string[] = [];

export interface LimitedParts {
  readonly enforcement: Enforcement;
  readonly refusals: Refusals;
}

/** A request as the gateway received it. Requests of node:http have this shape. */
export interface Sent extends HeaderSection {
  readonly method?: string | undefined;
  /** The request target. Each code unit of the string stands for one byte. */
  readonly url?: string | undefined;
}

/** The connection of a request. */
export interface Source {
  readonly origin: RequestOrigin;
}

export abstract class LimitedRequest implements ChargeableRequest, Spender, Refusable {
  abstract readonly req: Sent;
  abstract readonly connection: Source;
  abstract readonly entry: AccessEntry | null;
  abstract readonly client: Client | null;
  abstract readonly closes: boolean;
  head = EMPTY_HEAD;
  target = '';
  /** Whether browsers on other origins may read the reply. true until the route is known. */
  cors = true;
  sentBody: SentBody | null = null;
  charged: ChargedTo | null = null;
  priority: Priority = 'normal';
  arrivedAt: Millis = 0;
  /** Time that passed before the body was there. It is no part of the time of the decision. */
  bodyMs: Millis = 0;
  /** Canonical path; '' until it is known. */
  path = '';
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

  abstract answer(reply: OwnReply): void;

  deny(violated: readonly Violation[], decision: string): void {
    this.answer(denialReply(violated, framingOf(this, decision)));
  }

  /** Reads the body of a request whose policies count a field of it. Never calls back if the client leaves. */
  protected receiveBody(then: (body: SentBody) => void): void {
    then({ kind: 'absent' });
  }

  /** Answers a probe of `floodgate doctor`. @returns false if the token is invalid, so the request is not a probe */
  protected answersProbe(_token: string): boolean {
    return false;
  }

  answersPreflight(_decision: string | null): boolean {
    return false;
  }

  get isVouchedFor(): boolean {
    return false;
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
    const { table } = enforcement;
    this.arrivedAt = this.#now;
    const head = table.checkHead(req, this.connection.origin);
    if (!head.ok) {
      refusals.malformed(this, head.reason);
      return;
    }
    this.head = head;
    if (head.probe !== null && this.answersProbe(head.probe)) {
      this.#isDone = true;
      return;
    }
    const match = table.match(req.method ?? 'GET', req.url ?? '');
    if (!match.ok) {
      refusals.malformed(this, match.reason);
      return;
    }
    const { target, path, cover, closedBy, isNamed } = match;
    this.target = target;
    this.path = path;
    this.cors = isClientRoute(path);
    if (cover !== null) this.priority = cover.priority;
    enforcement.metrics.paths.count(path.slice(0, PATH_MAX), '', this.arrivedAt);
    this.entry?.matched(path, cover);
    enforcement.unmatched?.note(path, isNamed, this.arrivedAt);

    this.#decide(cover, closedBy, true);
  }

  /** @param mayAsk whether to ask the store if a ban depends on proofs that this process does not know */
  #decide(cover: Cover | null, closedBy: ListEntry | null, mayAsk: boolean): void {
    const { enforcement } = this.#parts;
    const listing = listingOf(enforcement, this, closedBy);
    if (mayAsk && listing?.kind === 'banned' && listing.unlessProven.length > 0) {
      const asked = enforcement.options.limiter.askProofs(listing.unlessProven);
      if (asked !== null) {
        void asked.then(() => {
          // The client may have left meanwhile. Nothing would release the resources that its request takes now.
          if (this.#isDone) enforcement.metrics.count('undecided', this.arrivedAt);
          else this.#decide(cover, closedBy, false);
        });
        return;
      }
    }
    if (listing !== null) {
      this.#follow(listing);
      return;
    }
    if (cover?.readsBody === true && this.sentBody === null) this.#chargeWithBody(cover);
    else this.#charge(cover);
  }

  /** If another policy is known to deny the request, it is denied before its body is read. */
  #chargeWithBody(cover: Cover): void {
    const { enforcement, refusals } = this.#parts;
    const { options, metrics } = enforcement;
    const others = chargeOf(enforcement, cover, this);
    if (typeof others === 'string') {
      refusals.malformed(this, others);
      return;
    }
    if (others !== null && options.limiter.knownExhausted(others.charge) !== null) {
      this.#charge(cover);
      return;
    }
    this.receiveBody((body) => {
      if (this.#isDone) return;
      this.sentBody = body;
      if (body.kind === 'unread') metrics.unreadBodies++;
      this.bodyMs = this.#now - this.arrivedAt;
      this.#decide(cover, null, true);
    });
  }

  #charge(cover: Cover | null): void {
    const { enforcement, refusals } = this.#parts;
    const charged = cover === null ? null : chargeOf(enforcement, cover, this);
    if (typeof charged === 'string') {
      refusals.malformed(this, charged);
      return;
    }
    this.charged = charged;
    this.entry?.charged(charged, this.caller.identity());
    if (charged === null) {
      this.#passUncounted();
      return;
    }
    this.#askedAt = this.#now;
    spend(enforcement, charged, this);
    this.entry?.asked(this.#askedAt);
  }

  #follow(listing: Listing): void {
    const { enforcement, refusals } = this.#parts;
    switch (listing.kind) {
      case 'malformed':
        refusals.malformed(this, listing.reason);
        return;
      case 'banned':
        refusals.banned(this, listing);
        return;
      case 'listed':
        enforcement.metrics.listed[listing.entry.list]++;
        if (listing.entry.list === 'deny') refusals.listed(this, listing.entry);
        else this.#passUncounted();
        return;
      default:
        listing satisfies never;
    }
  }

  onSpent(spent: Spent, position: number): void {
    const { entry } = this;
    const { enforcement, refusals } = this.#parts;
    const { metrics } = enforcement;
    entry?.spent(spent);
    if (!spent.isLocal) {
      const storeMs = this.#now - this.#askedAt;
      metrics.storeAnswered(storeMs, this.arrivedAt);
      if (entry !== null) entry.storeMs = storeMs;
    } else countDegraded(enforcement, this);
    const decision = decide(spent, position);
    switch (decision.kind) {
      case 'allow':
        metrics.count('allowed', this.arrivedAt);
        for (const { policy } of decision.verdicts) metrics.countPolicy(policy, 'allowed', this.arrivedAt);
        for (const policy of decision.shadowDenials)
          metrics.countPolicy(policy, 'shadowDenied', this.arrivedAt);
        if (decision.shadowDenials.length > 0 && !spent.isLocal)
          noteOffences(enforcement, this, decision.shadowDenials);
        if (entry !== null) {
          entry.decision = 'allow';
          entry.policy = decision.verdicts[0]?.policy.name ?? null;
        }
        this.#pass(limitHeaders(decision.verdicts), this.#reservationOf(spent, position));
        return;
      case 'deny':
        refusals.denied(this, decision.violated, spent.isLocal ? 'share' : 'store');
        return;
      default:
        decision satisfies never;
    }
  }

  denyFromMemory(violated: readonly Violation[]): void {
    this.#parts.refusals.denied(this, violated, 'memory');
  }

  onStoreUnavailable(): void {
    this.entry?.spent(null);
    this.#parts.refusals.unavailable(this);
  }

  #reservationOf(spent: Spent, position: number): Reservation | null {
    if (this.charged?.hasOutcomes !== true && spent.leases === null) return null;
    const { enforcement } = this.#parts;
    return new Reservation(enforcement.options.limiter, spent, position, (outcomes) =>
      enforcement.settled(outcomes),
    );
  }

  #passUncounted(): void {
    this.#parts.enforcement.metrics.count('uncovered', this.arrivedAt);
    this.#pass(NOTHING_ADDED, null);
  }

  #pass(added: readonly string[], reservation: Reservation | null): void {
    const now = this.#now;
    const { metrics } = this.#parts.enforcement;
    metrics.decided(now - this.arrivedAt - this.bodyMs, this.arrivedAt);
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
    const { file, version } = policies;
    return {
      method: this.req.method ?? '',
      target: this.target,
      addressFrom: addressSource(this.caller, options.trust),
      file,
      policyVersion: version,
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
