/**
 * What every request goes through: match -> identify -> spend -> decide, and then told that it is refused (refuse.ts),
 * or let pass. A denied request costs the store nothing once its bucket is known to be exhausted.
 */

import type { Client } from '#gateway/bounds/clients.ts';
import { isClientRoute } from '#gateway/http/header-names.ts';
import { type CheckedHead, EMPTY_HEAD } from '#gateway/http/request-head.ts';
import type { RequestOrigin } from '#gateway/http/request-headers.ts';
import { decide, type Violation } from '#gateway/limiter/decision.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { Reservation } from '#gateway/limiter/outcome.ts';
import type { AccessEntry } from '#gateway/observe/access-log/access-entry.ts';
import type { RefusedRequest } from '#gateway/operate/decisions/decisions.ts';
import { limitHeaders } from '#gateway/reply/limit-headers.ts';
import type { OwnReply } from '#gateway/reply/own-reply.ts';
import type { Millis } from '#shared/clock.ts';
import type { ChargedRequest, Enforcement, HeaderSection, RequestSource } from './enforcement.ts';
import type { ChargedTo, PeerSocket } from './identify.ts';
import type { Refusable, Refusals } from './refuse.ts';

const NOTHING_ADDED: readonly string[] = [];

export interface LimitedParts {
  readonly enforcement: Enforcement;
  readonly refusals: Refusals;
}

/** A request as it came; node:http's are such. */
export interface Sent extends HeaderSection, RequestSource {
  readonly method?: string | undefined;
  /** The target, one code unit a byte. */
  readonly url?: string | undefined;
}

/** Where it came from. */
export interface Source {
  readonly socket: PeerSocket;
  readonly origin: RequestOrigin;
}

export abstract class LimitedRequest implements ChargedRequest, Refusable {
  abstract readonly req: Sent;
  abstract readonly connection: Source;
  abstract readonly entry: AccessEntry | null;
  abstract readonly client: Client | null;
  abstract readonly closes: boolean;
  head = EMPTY_HEAD;
  target = '';
  /** Until the route is known: it may be one that browsers call. */
  cors = true;
  charged: ChargedTo | null = null;
  arrivedAt: Millis = 0;
  readonly #parts: LimitedParts;
  /** When the store was asked. */
  #askedAt: Millis = 0;
  /** Answered in the gateway's own name, or given up. */
  #isDone = false;

  constructor(parts: LimitedParts) {
    this.#parts = parts;
  }

  /**
   * It is admitted, and nobody has given it up.
   *
   * @param added the gateway's headers on the reply, names and values in turn
   * @param reservation null where every request counts, and none holds anything as long as it is in flight
   */
  protected abstract pass(added: readonly string[], reservation: Reservation | null, now: Millis): void;

  abstract answer(reply: OwnReply): void;

  abstract deny(violated: readonly Violation[], decision: string): void;

  /** Where it asks how the gateway sees it. @returns whether it was answered, and goes no further */
  protected answersProbe(_head: CheckedHead): boolean {
    return false;
  }

  /** Whoever sent it has checked its credentials. */
  protected get isVouchedFor(): boolean {
    return false;
  }

  run(): void {
    const { req } = this;
    const { enforcement, refusals } = this.#parts;
    const { metrics } = enforcement;
    this.arrivedAt = this.#now;
    const head = enforcement.checkHead(req, this.connection.origin);
    if (!head.ok) {
      refusals.malformed(this, head.reason);
      return;
    }
    this.head = head;
    if (head.probe !== null && this.answersProbe(head)) {
      this.#isDone = true;
      return;
    }
    const match = enforcement.match(req.method ?? 'GET', req.url ?? '');
    if (!match.ok) {
      refusals.malformed(this, match.reason);
      return;
    }
    const { target, cover } = match;
    this.target = target;
    this.cors = isClientRoute(match.path);
    this.entry?.matched(match.path, cover);

    const ban = enforcement.banOf(req, target, head);
    if (typeof ban === 'string') {
      refusals.malformed(this, ban);
      return;
    }
    if (ban !== null) {
      refusals.banned(this, ban);
      return;
    }
    const listed = enforcement.listed(req, target, head);
    if (typeof listed === 'string') {
      refusals.malformed(this, listed);
      return;
    }
    if (listed !== null) {
      metrics.listed[listed.list]++;
      if (listed.list === 'deny') refusals.listed(this, listed);
      else this.#passUncounted();
      return;
    }
    const charged = cover === null ? null : enforcement.chargeOf(cover, req, target, head, this.isVouchedFor);
    if (typeof charged === 'string') {
      refusals.malformed(this, charged);
      return;
    }
    this.charged = charged;
    this.entry?.charged(charged, enforcement.addressIdentity(charged, req.socket, head));
    if (charged === null) {
      this.#passUncounted();
      return;
    }
    this.#askedAt = this.#now;
    enforcement.spend(charged, this);
    this.entry?.asked(this.#askedAt);
  }

  onSpent(spent: Spent, position: number): void {
    const { entry } = this;
    const { enforcement, refusals } = this.#parts;
    const { metrics } = enforcement;
    entry?.spent(spent);
    if (spent.shares === null) {
      const storeMs = this.#now - this.#askedAt;
      metrics.storeTime.observe(storeMs);
      if (entry !== null) entry.storeMs = storeMs;
    } else enforcement.noteDegraded(this.charged);
    const decision = decide(spent, position);
    switch (decision.kind) {
      case 'allow':
        metrics.count('allowed');
        for (const { policy } of decision.verdicts) metrics.allowed(policy);
        for (const policy of decision.shadowDenials) metrics.shadowDenied(policy);
        if (entry !== null) {
          entry.decision = 'allow';
          entry.policy = decision.verdicts[0]?.policy.name ?? null;
        }
        this.#pass(limitHeaders(decision.verdicts), this.#reservationOf(spent, position));
        return;
      case 'deny':
        refusals.denied(this, decision.violated, spent.shares !== null, false);
        return;
      default:
        decision satisfies never;
    }
  }

  denyFromMemory(violated: readonly Violation[]): void {
    this.#parts.refusals.denied(this, violated, false, true);
  }

  onStoreUnavailable(): void {
    this.entry?.spent(null);
    this.#parts.refusals.unavailable(this);
  }

  #reservationOf(spent: Spent, position: number): Reservation | null {
    if (spent.levels === null || (this.charged?.hasOutcomes !== true && spent.leases === null)) return null;
    return new Reservation(this.#parts.enforcement.options.limiter, spent, position);
  }

  #passUncounted(): void {
    this.#parts.enforcement.metrics.count('uncovered');
    this.#pass(NOTHING_ADDED, null);
  }

  #pass(added: readonly string[], reservation: Reservation | null): void {
    const now = this.#now;
    this.#parts.enforcement.metrics.decisionTime.observe(now - this.arrivedAt);
    if (this.#isDone) reservation?.close();
    else this.pass(added, reservation, now);
  }

  get #now(): Millis {
    return this.#parts.enforcement.options.clock();
  }

  describe(): RefusedRequest {
    const { enforcement } = this.#parts;
    const { file, version } = enforcement.policies;
    return {
      method: this.req.method ?? '',
      target: this.target,
      addressFrom: enforcement.addressSource(this.head, this.connection.origin),
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
