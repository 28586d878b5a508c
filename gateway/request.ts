/**
 * The life of a request: match -> identify -> spend -> decide -> tell -> forward.
 *
 * The decision comes before the body is read. A denied request costs neither the upstream nor, once its bucket is
 * known to be exhausted, the store. Telling is in refusals.ts, forwarding in forwarding.ts.
 */
import type { IncomingMessage } from 'node:http';
import type { Millis } from '#shared/clock.ts';
import type { AccessEntry } from './access-log/access-entry.ts';
import type { Client } from './bounds/clients.ts';
import { decide, type Violation } from './decision.ts';
import type { RefusedRequest } from './decisions/decisions.ts';
import { answerProbe } from './doctor/probe.ts';
import type { ChargedRequest } from './enforce.ts';
import { type Admitted, Forwarding, type ForwardingParts, type RequestOptions } from './forwarding.ts';
import { isClientRoute } from './header-names.ts';
import type { ChargedTo } from './identify.ts';
import type { Spent } from './limiter/limiter.ts';
import { Reservation } from './limiter/outcome.ts';
import {
  assignExchange,
  type ClientConnection,
  type ClientResponse,
  type Exchange,
} from './proxy/client-connection.ts';
import { EMPTY_HEAD } from './proxy/request-head.ts';
import { limitHeaders } from './reply/limit-headers.ts';

const NOTHING_ADDED: readonly string[] = [];

export class GatewayRequest implements Exchange, ChargedRequest, Admitted {
  readonly req: IncomingMessage;
  readonly res: ClientResponse;
  readonly connection: ClientConnection;
  readonly options: RequestOptions;
  readonly entry: AccessEntry | null;
  head = EMPTY_HEAD;
  target = '';
  /** Until the route is known: it may be one that browsers call. */
  cors = true;
  charged: ChargedTo | null = null;
  arrivedAt: Millis = 0;
  readonly #parts: ForwardingParts;
  /** When the store was asked. */
  #askedAt: Millis = 0;
  /** null until it is admitted. */
  #forwarding: Forwarding | null = null;
  /** Answered in the gateway's own name, or given up. */
  #isDone = false;

  constructor(
    connection: ClientConnection,
    req: IncomingMessage,
    res: ClientResponse,
    parts: ForwardingParts,
    options: RequestOptions,
    entry: AccessEntry | null,
  ) {
    this.connection = connection;
    this.req = req;
    this.res = res;
    this.#parts = parts;
    this.options = options;
    this.entry = entry;
    assignExchange(res, this);
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
    if (head.probe !== null && answerProbe(req, this.res, head.probe, () => enforcement.seenAs(req, head))) {
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
    if (ban !== null) {
      refusals.banned(this, ban);
      return;
    }
    const listed = enforcement.listed(req, target, head);
    if (listed !== null) {
      metrics.listed[listed.list]++;
      if (listed.list === 'deny') refusals.listed(this, listed);
      else this.#forwardUncounted();
      return;
    }
    const charged = cover === null ? null : enforcement.chargeOf(cover, req, target, head);
    if (typeof charged === 'string') {
      refusals.malformed(this, charged);
      return;
    }
    this.charged = charged;
    this.entry?.charged(charged, enforcement.addressIdentity(charged, req.socket, head));
    if (charged === null) {
      this.#forwardUncounted();
      return;
    }
    this.#askedAt = this.#now;
    enforcement.spend(charged, this);
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
    }
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
        this.#forward(limitHeaders(decision.verdicts), this.#reservationOf(spent, position));
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
    this.#parts.refusals.unavailable(this);
  }

  /** @returns null where every request counts, and none holds anything as long as it is in flight */
  #reservationOf(spent: Spent, position: number): Reservation | null {
    if (spent.levels === null || (this.charged?.hasOutcomes !== true && spent.leases === null)) return null;
    return new Reservation(this.#parts.enforcement.options.limiter, spent, position);
  }

  #forwardUncounted(): void {
    this.#parts.enforcement.metrics.count('uncovered');
    this.#forward(NOTHING_ADDED, null);
  }

  /** @param added the gateway's headers on the reply, names and values in turn */
  #forward(added: readonly string[], reservation: Reservation | null): void {
    const now = this.#now;
    this.#parts.enforcement.metrics.decisionTime.observe(now - this.arrivedAt);
    if (this.#isDone) {
      reservation?.close();
      return;
    }
    this.#forwarding = new Forwarding(this.#parts, this, added, reservation, now);
    this.#forwarding.call.start();
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

  /** We are shutting down, or the client holds back the body it announced. */
  get closes(): boolean {
    const holdsBack = this.options.expectsContinue && this.#forwarding?.call.hasContinued !== true;
    return this.#parts.upstream.draining || holdsBack;
  }

  get client(): Client | null {
    return this.#forwarding?.client ?? this.connection.client;
  }

  get isClosed(): boolean {
    return this.#isDone || this.#forwarding?.call.isClosed === true;
  }

  get isUploading(): boolean {
    return this.#forwarding?.call.isUploading === true;
  }

  close(): void {
    this.#isDone = true;
    this.#forwarding?.close();
  }

  onDrain(): void {
    this.#forwarding?.call.onDrain();
  }

  onTick(unreadMs: Millis): void {
    this.#forwarding?.call.onTick(unreadMs);
  }
}
