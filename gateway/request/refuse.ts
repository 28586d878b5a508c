/**
 * Refuses requests. Each refusal is counted, recorded for `floodgate why`, named in the access log and answered, in
 * this order.
 */

import type { BoundName } from '#gateway/bounds/bound-names.ts';
import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { retryAfterSeconds, type Violation } from '#gateway/limiter/decision.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { LoggedDecision } from '#gateway/observe/log-line.ts';
import type { Outcome } from '#gateway/observe/metrics/metrics.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { ProxyFailure } from '#gateway/proxy/forwarded-request.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';
import { RETRY_SECONDS } from '#gateway/refusals/codes.ts';
import type { Decisions, Refused } from '#gateway/refusals/decisions.ts';
import { LIST_REASONS, REASONS } from '#gateway/refusals/reasons.ts';
import {
  banRefusal,
  boundRefusal,
  listRefusal,
  overloadRefusal,
  policyRefusal,
  type Refusal,
} from '#gateway/refusals/refusal.ts';
import { type Cors, UNREAD } from '#gateway/reply/cors.ts';
import { bannedReply, type Framing, listedReply } from '#gateway/reply/denial.ts';
import { type OwnReply, ownReply } from '#gateway/reply/own-reply.ts';
import type { Page } from '#gateway/reply/page.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { Enforcement } from './enforcement.ts';
import { boundReply, failureReply } from './failure.ts';
import { noteOffences } from './offences.ts';
import type { Caller } from './reading/caller.ts';
import type { Banned, ChargedTo } from './reading/reading.ts';
import { countDegraded } from './spend.ts';

/** A request that can be refused. */
export interface Refusable extends Refused {
  /** The client that holds the request's resources; null if it holds none. */
  readonly client: Client | null;
  /** Entry of the access log; null if the request is not logged. */
  readonly entry: AccessEntry | null;
  readonly caller: Caller;
  readonly charged: ChargedTo | null;
  readonly arrivedAt: Millis;
  /** See LimitedRequest. */
  readonly bodyMs: Millis;
  readonly match: Match;
  /** See LimitedRequest. */
  readonly isNewcomer: boolean;
  /** Decides what pages of other origins may read. */
  readonly cors: Cors;
  /** Whether the connection ends with this reply. */
  readonly closes: boolean;
  /** The page for a browser; null for a JSON reply. */
  readonly page: Page | null;
  /** Marks the request as answered. @returns false if it was answered before, or its client has left */
  finish(): boolean;
  answer(reply: OwnReply): void;
  /**
   * Answers the request if it is a preflight and the page may read the refusal of the request that follows.
   *
   * @param decision id of the refusal; null if it has none
   * @returns false if it has to be refused like any request
   */
  answersPreflight(decision: string | null): boolean;
  /** @param violated the exhausted policies @param decision id of the refusal */
  deny(violated: readonly Violation[], retryAfter: Seconds, decision: string): void;
}

interface RefusalsOptions {
  readonly enforcement: Enforcement;
  readonly decisions: Decisions;
  readonly upstream: Pick<Upstream, 'bounds'>;
}

/**
 * `store`: the store denied. `share`: the store is unavailable, and the share of this process is used up. `memory`: the
 * store was not asked.
 */
type DeniedBy = 'store' | 'share' | 'memory';

export class Refusals {
  readonly #options: RefusalsOptions;

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  malformed(request: Refusable, reason: string): void {
    const { code, outcome, logged } = REASONS.malformed;
    const { metrics } = this.#options.enforcement;
    metrics.count(outcome);
    metrics.refusedOn(request.match.path);
    if (!request.finish()) return;
    log(request, logged, null, null);
    request.answer(ownReply(code, reason, { ...framingOf(request, null), close: true }));
  }

  banned(request: Refusable, { identity, endsAt, policy }: Banned): void {
    const { enforcement } = this.#options;
    const { outcome, logged } = REASONS.ban;
    if (!this.#begin(request, outcome)) return;
    const leftMs = endsAt - enforcement.options.clock();
    const decision = this.#record(banRefusal(identity, leftMs, policy), request, request.caller);
    log(request, logged, decision, null);
    if (request.answersPreflight(decision)) return;
    request.answer(bannedReply(leftMs, framingOf(request, decision)));
  }

  /** Refuses a client or route of the list deny. */
  listed(request: Refusable, entry: ListEntry): void {
    const { outcome, logged } = LIST_REASONS[entry.names];
    if (!this.#begin(request, outcome)) return;
    const refusal = listRefusal(entry, request.caller.identity());
    const decision = this.#record(refusal, request, request.caller);
    log(request, logged, decision, refusal.policy);
    if (request.answersPreflight(decision)) return;
    request.answer(listedReply(entry, framingOf(request, decision)));
  }

  denied(request: Refusable, violated: readonly Violation[], by: DeniedBy): void {
    const { enforcement } = this.#options;
    const { metrics } = enforcement;
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
    const { outcome, logged, kind } = REASONS.policyLimit;
    if (!this.#begin(request, outcome)) return;
    const [first] = violated;
    // `violated` may be empty in a Redis Cluster: the counter that denied may have room again a moment later.
    const bucket = first?.bucket ?? request.charged?.charge.buckets[0];
    if (bucket === undefined) throw new Error('only what was charged is denied');
    const decision = this.#record(
      policyRefusal(bucket, {
        decision: kind,
        violated: violated.map(({ policy }) => policy.name),
        limit: first?.share ?? bucket.capacity,
        used: first?.used ?? null,
        resetMs: first?.resetMs ?? 0,
        isLocal: by === 'share',
        fromMemory: by === 'memory',
      }),
      request,
      request.caller,
    );
    log(request, logged, decision, first?.policy.name ?? null);
    if (request.answersPreflight(decision)) return;
    request.deny(violated, retryAfterSeconds(violated, enforcement.options.randomInt), decision);
  }

  /** @returns the id of the refusal */
  #record(refusal: Refusal, refused: Refused, caller: Caller): string {
    this.#noteAddress(refusal.identity, caller);
    return this.#options.decisions.add(refusal, refused);
  }

  #noteAddress(digest: string, { address, table }: Caller): void {
    const { addresses } = this.#options.enforcement.options;
    if (addresses?.isOn && address.isReadable && digest !== table.everyone.digest)
      addresses.note(digest, address.counted());
  }

  /** Counts each denied identity once, for the list of clients denied most often. */
  #noteLimited({ charged, arrivedAt, caller }: Refusable, violated: readonly Violation[]): void {
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

  /** Refuses a request because the store is unavailable and a policy has `onStoreFailure: deny`. */
  unavailable(request: Refusable): void {
    const { enforcement } = this.#options;
    countDegraded(enforcement, request);
    const { code, text, outcome, logged, kind } = REASONS.storeUnavailable;
    if (!this.#begin(request, outcome)) return;
    const bucket = request.charged?.charge.buckets.find(
      ({ policy }) => policy.mode === 'enforce' && policy.onStoreFailure === 'deny',
    );
    const decision =
      bucket === undefined
        ? null
        : this.#record(
            policyRefusal(bucket, {
              decision: kind,
              violated: [bucket.policy.name],
              limit: bucket.capacity,
              used: null,
              resetMs: RETRY_SECONDS * 1000,
              isLocal: true,
              fromMemory: false,
            }),
            request,
            request.caller,
          );
    log(request, logged, decision, bucket?.policy.name ?? null);
    if (request.answersPreflight(decision)) return;
    const policy = bucket?.policy.name ?? '';
    request.answer(ownReply(code, text, { ...framingOf(request, decision), policy }));
  }

  /**
   * Answers a request that was admitted but got no reply from the upstream.
   *
   * @param added the gateway's headers for the reply, alternating names and values
   */
  failed(request: Refusable, failure: ProxyFailure, added: readonly string[]): void {
    if (!request.finish()) return;
    const decision =
      failure.kind === 'bound'
        ? this.#busy(request, failure.bound, failure.refusal)
        : failure.kind === 'overloaded'
          ? this.#overloaded(request, failure.priority)
          : null;
    if (request.answersPreflight(decision)) return;
    request.answer(failureReply(failure, { ...framingOf(request, decision), headers: added }));
  }

  /** Records that a bound is reached. @returns the id of the refusal */
  #busy(request: Refusable, name: BoundName, refusal: BoundRefusal): string {
    const { client, caller } = request;
    const bound = this.#options.upstream.bounds[name];
    return this.#noteBusy(request, boundRefusal(bound, refusal, client, caller.identity()));
  }

  #overloaded(request: Refusable, priority: Priority): string {
    const { upstream_connections } = this.#options.upstream.bounds;
    return this.#noteBusy(
      request,
      overloadRefusal(upstream_connections, priority, request.isNewcomer, request.caller.identity()),
    );
  }

  /** @returns the id of the refusal */
  #noteBusy(request: Refusable, refusal: Refusal): string {
    const { metrics } = this.#options.enforcement;
    metrics.replied('bound');
    metrics.refusedOn(request.match.path);
    const id = this.#record(refusal, request, request.caller);
    // `entry.decision` stays unchanged, because the policies have admitted the request.
    if (request.entry !== null) request.entry.id = id;
    return id;
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
    const record = boundRefusal(bound, refusal, client, caller.identity());
    const refused = {
      describe: () => ({ method: '', target: '', addressFrom, file }),
    };
    const decision = this.#record(record, refused, caller);
    return boundReply(bound.name, refusal, { cors: UNREAD, close: true, headers: [], decision, page: null });
  }

  /** Counts a refusal. @returns false if the request was answered before, or its client has left */
  #begin(request: Refusable, outcome: Outcome): boolean {
    const { metrics, options } = this.#options.enforcement;
    const { arrivedAt, bodyMs, match } = request;
    metrics.count(outcome);
    metrics.decided(options.clock() - arrivedAt - bodyMs);
    metrics.refusedOn(match.path);
    return request.finish();
  }
}

/** Returns the framing of a refusal. */
export function framingOf<Id extends string | null>(
  { cors, closes, page }: Pick<Refusable, 'cors' | 'closes' | 'page'>,
  decision: Id,
): Framing & { readonly decision: Id } {
  return { cors, close: closes, page, decision };
}

/** @param id of the refusal; null if it has none @param policy that refused; null if none did */
function log({ entry }: Refusable, decision: LoggedDecision, id: string | null, policy: string | null): void {
  if (entry === null) return;
  entry.decision = decision;
  entry.id = id;
  entry.policy = policy;
}
