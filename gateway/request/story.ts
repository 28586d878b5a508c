/**
 * The steps of every request: locate, read, spend, decide. Then it passes or is refused. A denied request costs the
 * store nothing once its counter is known to be exhausted. Nothing is counted or logged here: observers hear of it.
 */

import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { SentBody } from '#gateway/identity/body-field.ts';
import { decide } from '#gateway/limiter/decision.ts';
import type { LimitListener, Spent, Violation } from '#gateway/limiter/limiter.ts';
import { Reservation } from '#gateway/limiter/outcome.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import { type LimitRefusal, limitRefusal, type Refusal, storeRefusal } from '#gateway/refusals/refusal.ts';
import { limitHeaders } from '#gateway/reply/limit-headers.ts';
import type { Framing } from '#gateway/reply/own-reply.ts';
import type { Millis } from '#shared/clock.ts';
import type { Enforcement } from './enforcement.ts';
import type { Allowed, Events, RequestFacts } from './events.ts';
import { probeReply } from './probe.ts';
import type { Caller } from './reading/caller.ts';
import { locate, NOWHERE, read, type Sent } from './reading/read.ts';
import type { Banned, ChargedTo, KnownAs, Malformed } from './reading/reading.ts';

const NOTHING_ADDED: readonly string[] = [];

/** How a request came, and how it is answered: at the public port, or for a proxy that asks. */
export interface Way {
  readonly req: Sent;
  readonly connection: { readonly origin: RequestOrigin };
  /** Entry of the access log; null if the request is not logged. */
  readonly entry: AccessEntry | null;
  /** Whether the connection ends with a reply of the gateway. */
  readonly closes: boolean;
  /** Whether browsers get a page instead of JSON. */
  readonly takesPages: boolean;
  /** Whether the sender has checked the request's credentials, so that they count as proven. */
  readonly isVouchedFor: boolean;
  /** Whether another proxy asks about the request, and forwards it itself. */
  readonly isAsked: boolean;
  /** Reads the body of a request whose policies count a field of it. Never calls back if the client leaves. */
  receiveBody(then: (body: SentBody) => void): void;
  /** Answers a probe of `floodgate doctor`. */
  answerProbe(seen: string): void;
  /**
   * Lets an admitted request pass.
   *
   * @param added the gateway's headers for the reply, alternating names and values
   * @param reservation null if the charge does not depend on the reply, and no policy counts requests in flight
   */
  pass(added: readonly string[], reservation: Reservation | null): void;
  refuse(refusal: Refusal, framing: Framing): void;
}

/** A request that can be refused. */
export interface Refusable extends RequestFacts {
  readonly way: Way;
  /** Marks the request as answered. @returns false if it was answered before, or its client has left */
  finish(): boolean;
}

export interface StoryParts {
  readonly enforcement: Enforcement;
  readonly events: Events;
  readonly refusals: { refuse(request: Refusable, refusal: Refusal): void };
}

export class Story implements Refusable, LimitListener {
  readonly way: Way;
  readonly req: Sent;
  readonly entry: AccessEntry | null;
  readonly isVouchedFor: boolean;
  readonly arrivedAt: Millis;
  head = NOWHERE.head;
  match = NOWHERE.match;
  host = NOWHERE.host;
  presented = NOWHERE.presented;
  sentBody: SentBody | null = null;
  bodyMs: Millis = 0;
  allowedBy: ListEntry | null = null;
  charged: ChargedTo | null = null;
  identified: KnownAs | null = null;
  spent: Spent | null = null;
  storeMs: Millis | null = null;
  allowed: Allowed | null = null;
  passedAt: Millis | null = null;
  /** Whether the gateway has answered the request, or the client has left. */
  isOver = false;
  readonly #parts: StoryParts;
  #caller: Caller | null = null;
  #askedAt: Millis = 0;
  /** Whether it waits for its body, or for the proof of a key. */
  #isWaiting = false;

  constructor(way: Way, parts: StoryParts) {
    this.way = way;
    this.req = way.req;
    this.entry = way.entry;
    this.isVouchedFor = way.isVouchedFor;
    this.#parts = parts;
    this.arrivedAt = this.#now;
  }

  get caller(): Caller {
    this.#caller ??= this.#parts.enforcement.callerOf(this.way.connection.origin, this.head.forwardedFor);
    return this.#caller;
  }

  begin(): void {
    const { enforcement, events } = this.#parts;
    const problem = this.locate();
    const seen = problem === null ? probeReply(this, this.way.isAsked, enforcement.options) : null;
    if (problem !== null) this.refuse(problem);
    else if (seen !== null) {
      this.isOver = true;
      this.way.answerProbe(seen);
    } else {
      events.located(this);
      this.#read(true);
    }
  }

  /** @returns why the request is malformed; null if its route is known now */
  locate(): Malformed | null {
    const located = locate(this.#parts.enforcement.table, this.req, this.way.connection.origin);
    if (located.kind === 'malformed') return located;
    this.head = located.head;
    this.match = located.match;
    this.host = located.host;
    this.presented = located.presented;
    return null;
  }

  /** @param mayAsk whether to ask the store if a ban depends on proofs that this process does not know */
  #read(mayAsk: boolean): void {
    const { options } = this.#parts.enforcement;
    const reading = read(this, options);
    switch (reading.kind) {
      case 'malformed':
      case 'listed':
        this.refuse(reading);
        return;
      case 'banned':
        if (!mayAsk || !this.#asksProofs(reading))
          this.refuse({ ...reading, leftMs: reading.endsAt - this.#now });
        return;
      case 'uncovered':
        this.allowedBy = reading.allowedBy;
        if (reading.allowedBy !== null) this.#pass(NOTHING_ADDED, null);
        else if (this.#lacksBody) this.#readBody();
        else this.#spend(null, reading.identified);
        return;
      case 'charged':
        // If another policy is known to deny the request, it is denied before its body is read.
        if (this.#lacksBody && !options.limiter.surelyDenies(reading.charge)) this.#readBody();
        else this.#spend(reading, reading.identified);
        return;
      default:
        reading satisfies never;
    }
  }

  /** @returns false if the store cannot be asked, or this process knows the proofs */
  #asksProofs({ unlessProven }: Banned): boolean {
    if (unlessProven.length === 0) return false;
    const asked = this.#parts.enforcement.options.limiter.askProofs(unlessProven);
    if (asked === null) return false;
    this.#isWaiting = true;
    void asked.then(() => {
      this.#isWaiting = false;
      // The client may have left meanwhile. Nothing would release the resources that its request takes now.
      if (!this.isOver) this.#read(false);
    });
    return true;
  }

  get #lacksBody(): boolean {
    return this.sentBody === null && this.match.cover?.readsBody === true;
  }

  #readBody(): void {
    this.#isWaiting = true;
    this.way.receiveBody((body) => {
      this.#isWaiting = false;
      if (this.isOver) return;
      this.sentBody = body;
      this.bodyMs = this.#now - this.arrivedAt;
      this.#read(true);
    });
  }

  #spend(charged: ChargedTo | null, identified: KnownAs | null): void {
    const { enforcement, events } = this.#parts;
    const { limiter } = enforcement.options;
    this.charged = charged;
    this.identified = identified;
    events.charged(this);
    if (charged === null) {
      this.#pass(NOTHING_ADDED, null);
      return;
    }
    this.#askedAt = this.#now;
    const exhausted = limiter.knownExhausted(charged.charge);
    if (exhausted === null) limiter.spend(charged.charge, this);
    else this.#deny(exhausted, 'memory');
  }

  onSpent(spent: Spent, position: number): void {
    this.spent = spent;
    if (!spent.isLocal) this.storeMs = this.#now - this.#askedAt;
    this.#parts.events.spent(this, spent);
    const decision = decide(spent, position);
    if (decision.kind === 'deny') this.#deny(decision.violated, spent.isLocal ? 'share' : 'store');
    else {
      this.allowed = decision;
      this.#pass(limitHeaders(decision.verdicts), this.#reservationOf(spent, position));
    }
  }

  onStoreUnavailable(): void {
    this.refuse(storeRefusal(this.charged?.charge.buckets ?? []));
  }

  #reservationOf(spent: Spent, position: number): Reservation | null {
    if (this.match.cover?.hasOutcomes !== true && spent.leases === null) return null;
    const { enforcement, events } = this.#parts;
    return new Reservation(enforcement.options.limiter, spent, position, (outcomes) =>
      events.settled(this, outcomes),
    );
  }

  #pass(added: readonly string[], reservation: Reservation | null): void {
    this.passedAt = this.#now;
    this.#parts.events.passed(this);
    if (this.isOver) reservation?.close();
    else this.way.pass(added, reservation);
  }

  #deny(violated: readonly Violation[], by: LimitRefusal['by']): void {
    const { randomInt } = this.#parts.enforcement.options;
    this.refuse(limitRefusal(violated, this.charged?.charge.buckets ?? [], by, randomInt));
  }

  refuse(refusal: Refusal): void {
    this.#parts.refusals.refuse(this, refusal);
  }

  /** Called when the reply of the application begins. @param headers alternating names and values */
  replied(status: number, headers: readonly string[]): void {
    const now = this.#now;
    const tookMs = now - (this.passedAt ?? now);
    this.#parts.events.replied(this, { status, headers, tookMs });
  }

  /** Called when the request is answered, or the client has left. @returns false if it was over before */
  finish(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    return true;
  }

  /** Called when its reply is sent, or the client has left. */
  close(): void {
    if (this.finish() && this.#isWaiting) this.#parts.events.left(this);
  }

  get #now(): Millis {
    return this.#parts.enforcement.options.clock();
  }
}
