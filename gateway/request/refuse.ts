/**
 * Refuses requests. Each refusal is counted, recorded for `floodgate why`, named in the access log and answered, in
 * this order.
 */

import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { Decisions, Refused } from '#gateway/refusals/decisions.ts';
import type { Reason } from '#gateway/refusals/reasons.ts';
import { kindOf, type LimitRefusal, type Recorded, type Refusal } from '#gateway/refusals/refusal.ts';
import { type Cors, UNREAD } from '#gateway/reply/cors.ts';
import type { OwnReply } from '#gateway/reply/own-reply.ts';
import type { Page } from '#gateway/reply/page.ts';
import { type Framing, refusalReply } from '#gateway/reply/refusal-reply.ts';
import type { Millis } from '#shared/clock.ts';
import type { Enforcement } from './enforcement.ts';
import { noteOffences } from './offences.ts';
import type { Caller } from './reading/caller.ts';
import type { ChargedTo } from './reading/reading.ts';
import { countDegraded } from './spend.ts';

/** A request that can be refused. */
export interface Refusable extends Refused {
  /** Entry of the access log; null if the request is not logged. */
  readonly entry: AccessEntry | null;
  readonly caller: Caller;
  readonly charged: ChargedTo | null;
  readonly arrivedAt: Millis;
  /** See LimitedRequest. */
  readonly bodyMs: Millis;
  readonly match: Match;
  /** Decides what pages of other origins may read. */
  readonly cors: Cors;
  /** Whether the connection ends with this reply. */
  readonly closes: boolean;
  /** The page for a browser; null for a JSON reply. */
  readonly page: Page | null;
  /** Marks the request as answered. @returns false if it was answered before, or its client has left */
  finish(): boolean;
  /**
   * Answers the request if it is a preflight and the page may read the refusal of the request that follows.
   *
   * @returns false if it has to be refused like any request
   */
  answersPreflight(framing: Framing): boolean;
  answer(refusal: Refusal, framing: Framing): void;
}

interface RefusalsOptions {
  readonly enforcement: Enforcement;
  readonly decisions: Decisions;
}

export class Refusals {
  readonly #options: RefusalsOptions;

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  refuse(request: Refusable, refusal: Refusal): void {
    const reason = kindOf(refusal).reason(refusal);
    this.#count(request, refusal, reason);
    if (!request.finish()) return;
    const record = refusal.kind === 'malformed' ? null : kindOf(refusal).record(refusal, request.caller);
    const decision = record === null ? null : this.#record(record, request, request.caller);
    log(request, reason, decision, refusal.kind === 'banned' ? null : (record?.policy ?? null));
    const { cors, closes, page } = request;
    // After a malformed request, nobody knows where the next one begins.
    const close = closes || refusal.kind === 'malformed';
    const framing = { cors, close, page, decision };
    if (refusal.kind === 'malformed' || !request.answersPreflight(framing)) request.answer(refusal, framing);
  }

  /**
   * Refuses a connection before any request on it is read.
   *
   * @param client null if the connection counted only for the total of the bound
   * @returns the reply for its client
   */
  connection(bound: Bound, refusal: BoundRefusal, client: Client | null, origin: RequestOrigin): OwnReply {
    const { enforcement } = this.#options;
    const { file } = enforcement.policies;
    const addressFrom = origin.isIntroduced ? 'PROXY header' : 'socket';
    const caller = enforcement.callerOf(origin, '');
    const refused = { kind: 'bound', bound, refusal, client } as const;
    const record = kindOf(refused).record(refused, caller);
    const describe = () => ({ method: '', target: '', addressFrom, file });
    const decision = record === null ? null : this.#record(record, { describe }, caller);
    return refusalReply(refused, { cors: UNREAD, close: true, page: null, decision });
  }

  #count(request: Refusable, refusal: Refusal, { outcome = null }: Reason): void {
    const { enforcement } = this.#options;
    const { metrics, options } = enforcement;
    const { arrivedAt, bodyMs, match } = request;
    if (refusal.kind === 'unavailable' || refusal.kind === 'timeout') {
      metrics.replied('none');
      return;
    }
    if (refusal.kind === 'bound' || refusal.kind === 'overloaded') metrics.replied('bound');
    if (refusal.kind === 'limit') this.#countLimit(request, refusal);
    if (refusal.kind === 'store') countDegraded(enforcement, request);
    if (refusal.kind === 'listed') metrics.listed.deny++;
    metrics.refusedOn(match.path);
    if (outcome === null) return;
    metrics.count(outcome);
    if (refusal.kind !== 'malformed') metrics.decided(options.clock() - arrivedAt - bodyMs);
  }

  #countLimit(request: Refusable, { violated, by }: LimitRefusal): void {
    const { enforcement } = this.#options;
    const { metrics } = enforcement;
    if (by === 'memory') metrics.deniedFromMemory++;
    for (const { policy } of violated) metrics.countPolicy(policy, 'denied');
    if (violated.some(({ policy }) => policy.regulars !== null)) metrics.newcomersDenied.enforce++;
    // During an outage, each process applies a share of the limit. A client can exceed the share without an offence.
    if (by !== 'share' && violated.some(({ policy }) => policy.ban !== null))
      noteOffences(
        enforcement,
        request,
        violated.map(({ policy }) => policy),
      );
    this.#noteLimited(request, violated);
  }

  /** @returns the id of the refusal */
  #record(record: Recorded, refused: Refused, caller: Caller): string {
    this.#noteAddress(record.identity, caller);
    return this.#options.decisions.add(record, refused);
  }

  #noteAddress(digest: string, { address, table }: Caller): void {
    const { addresses } = this.#options.enforcement.options;
    if (addresses?.isOn && address.isReadable && digest !== table.everyone.digest)
      addresses.note(digest, address.counted());
  }

  /** Counts each denied identity once, for the list of clients denied most often. */
  #noteLimited({ charged, arrivedAt, caller }: Refusable, violated: LimitRefusal['violated']): void {
    const { metrics } = this.#options.enforcement;
    const seen: string[] = [];
    for (const { policy, identity } of charged?.charge.buckets ?? []) {
      // A limit for everyone denies the request of one client, so that client is counted.
      const { digest } = policy.identifier.kind === 'everyone' ? caller.identity() : identity;
      if (seen.includes(digest) || !violated.some((verdict) => verdict.policy === policy)) continue;
      seen.push(digest);
      metrics.limited.count(digest, policy.name, arrivedAt);
      this.#noteAddress(digest, caller);
    }
  }
}

/** @param id of the refusal; null if it has none @param policy that refused; null if none did */
function log(
  { entry }: Refusable,
  { logged = null }: Reason,
  id: string | null,
  policy: string | null,
): void {
  if (entry === null) return;
  // The policies may have admitted the request before. The log then says so, and only the id is added.
  if (id !== null) entry.id = id;
  if (logged === null) return;
  entry.decision = logged;
  entry.policy = policy;
}
