/**
 * The life of a request: match -> identify -> spend -> decide -> tell -> forward.
 *
 * The decision comes before the body is read. A denied request costs neither the upstream nor, once its bucket is
 * known to be exhausted, the store.
 */
import type { IncomingMessage } from 'node:http';
import type { Millis } from '#shared/clock.ts';
import type { AccessEntry, LoggedDecision } from './access-log/access-entry.ts';
import type { BoundName } from './bounds/bound-names.ts';
import type { Refusal as BoundRefusal } from './bounds/bounds.ts';
import type { Client, Clients } from './bounds/clients.ts';
import { decide, type Violation } from './decision.ts';
import { banRefusal, boundRefusal, listedRefusal } from './decisions/beside-refusals.ts';
import type { Decisions, Refused, RefusedRequest } from './decisions/decisions.ts';
import { answerProbe } from './doctor/probe.ts';
import type { ChargedRequest, Enforcement, StandingBan } from './enforce.ts';
import { DECISION_HEADER, isClientRoute } from './header-names.ts';
import type { ChargedTo } from './identify.ts';
import type { Spent } from './limiter/limiter.ts';
import { Reservation } from './limiter/outcome.ts';
import { BAN, boundCounter } from './policy/beside-policies.ts';
import type { ListEntry } from './policy/lists.ts';
import {
  assignExchange,
  type ClientConnection,
  type ClientResponse,
  type Exchange,
} from './proxy/client-connection.ts';
import { ProxyCall } from './proxy/proxy-call.ts';
import type { ProxyCallOwner, ProxyFailure } from './proxy/proxy-call-options.ts';
import { EMPTY_HEAD } from './proxy/request-head.ts';
import type { UpgradeSocket } from './proxy/upgrade.ts';
import type { Upstream } from './proxy/upstream.ts';
import { bannedReply, listedReply } from './reply/denial.ts';
import { failureReply } from './reply/failure.ts';
import { limitHeaders } from './reply/limit-headers.ts';
import { type OwnReply, ownReply, sendOwn } from './reply/own-reply.ts';
import type { RequestTrace } from './tracing/tracing.ts';

export interface RequestParts {
  readonly enforcement: Enforcement;
  readonly upstream: Upstream;
  readonly clients: Clients;
  readonly decisions: Decisions;
}

export interface RequestOptions {
  /** The client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;
  /** Set when the client wants to switch protocols. */
  readonly upgrade: UpgradeSocket | null;
}

/** What is told to whom is refused because the store is away. */
const UNAVAILABLE_RETRY_MS: Millis = 1000;

export class GatewayRequest implements Exchange, ChargedRequest, ProxyCallOwner, Refused {
  readonly req: IncomingMessage;
  readonly res: ClientResponse;
  readonly connection: ClientConnection;
  readonly #parts: RequestParts;
  readonly #options: RequestOptions;
  /** null: no line in the access log, and no spans. */
  readonly #entry: AccessEntry | null;
  /** null: no request is traced. */
  readonly #trace: RequestTrace | null;
  #charged: ChargedTo | null = null;
  /** null where every request counts, and none holds anything as long as it is in flight. */
  #reservation: Reservation | null = null;
  #head = EMPTY_HEAD;
  #target = '';
  #cors = false;
  /** The gateway's headers on the reply, names and values in turn. */
  #added: readonly string[] = [];
  #call: ProxyCall | null = null;
  /** The policies that refused. */
  #violated: readonly Pick<Violation, 'policy'>[] = [];
  /** Answered in the gateway's own name, or given up. */
  #isDone = false;
  #arrivedAt: Millis = 0;
  /** When the store was asked. */
  #askedAt: Millis = 0;
  #forwardedAt: Millis = 0;

  constructor(
    connection: ClientConnection,
    req: IncomingMessage,
    res: ClientResponse,
    parts: RequestParts,
    options: RequestOptions,
    entry: AccessEntry | null,
    trace: RequestTrace | null,
  ) {
    this.connection = connection;
    this.req = req;
    this.res = res;
    this.#parts = parts;
    this.#options = options;
    this.#entry = entry;
    this.#trace = trace;
    assignExchange(res, this);
  }

  run(): void {
    const { req } = this;
    const { enforcement } = this.#parts;
    this.#arrivedAt = this.#now;
    // Refused before anything is charged. The route is unknown: it may be one that browsers call.
    this.#cors = true;
    const head = enforcement.checkHead(req, this.connection.origin);
    if (!head.ok) {
      this.#refuseMalformed(head.reason);
      return;
    }
    this.#head = head;
    if (head.probe !== null && answerProbe(req, this.res, head.probe, () => enforcement.seenAs(req, head))) {
      this.#isDone = true;
      return;
    }
    const match = enforcement.match(req.method ?? 'GET', req.url ?? '');
    if (!match.ok) {
      this.#refuseMalformed(match.reason);
      return;
    }
    this.#target = match.target;
    this.#cors = isClientRoute(match.path);
    this.#entry?.matched(match.path, match.cover);

    const ban = enforcement.banOf(req, match.target, head);
    if (ban !== null) {
      this.#refuseBanned(ban);
      return;
    }
    const listed = enforcement.listed(req, match.target, head);
    if (listed !== null) {
      this.#followList(listed);
      return;
    }
    const charged = match.cover === null ? null : enforcement.chargeOf(match.cover, req, match.target, head);
    if (typeof charged === 'string') {
      this.#refuseMalformed(charged);
      return;
    }
    this.#charged = charged;
    this.#entry?.charged(charged, enforcement.addressIdentity(charged, req.socket, head));
    if (charged === null) {
      enforcement.metrics.count('uncovered');
      this.#forward();
    } else {
      this.#askedAt = this.#now;
      enforcement.spend(charged, this);
      this.#entry?.asked(this.#askedAt);
    }
  }

  onSpent(spent: Spent, position: number): void {
    this.#entry?.spent(spent);
    const { metrics } = this.#parts.enforcement;
    if (spent.shares === null) {
      const storeMs = this.#now - this.#askedAt;
      metrics.storeTime.observe(storeMs);
      if (this.#entry !== null) this.#entry.storeMs = storeMs;
    }
    const decision = decide(spent, position);
    switch (decision.kind) {
      case 'allow':
        metrics.count('allowed');
        for (const { policy } of decision.verdicts) metrics.allowed(policy);
        for (const policy of decision.shadowDenials) metrics.shadowDenied(policy);
        if (this.#entry !== null) {
          this.#entry.decision = 'allow';
          this.#entry.policy = decision.verdicts[0]?.policy.name ?? null;
        }
        if (spent.levels !== null) this.#reserve(spent, position);
        this.#added = limitHeaders(decision.verdicts);
        this.#forward();
        return;
      case 'deny':
        this.#deny(decision.violated, spent.shares !== null, false);
        return;
      default:
        decision satisfies never;
    }
  }

  onStoreUnavailable(): void {
    this.#entry?.spent(null);
    this.#parts.enforcement.metrics.count('unavailable');
    this.#decided();
    const decision = this.#refuseUnavailable();
    this.#log('unavailable', decision);
    this.#send(
      ownReply('gateway_store_unavailable', 'limits cannot be checked at the moment; try again in a second', {
        cors: this.#cors,
        close: this.#closes,
        headers: ['Retry-After', '1', ...(decision === null ? [] : [DECISION_HEADER, decision])],
        extra: decision === null ? {} : { decision },
      }),
    );
  }

  /** @returns the decision's id; null where no policy says deny */
  #refuseUnavailable(): string | null {
    const part = this.#charged?.charge.parts.find(
      ({ policy }) => policy.mode === 'enforce' && policy.onStoreFailure === 'deny',
    );
    if (part === undefined) return null;
    this.#violated = [part];
    return this.#parts.decisions.add(
      {
        decision: 'unavailable',
        part,
        limit: part.capacity,
        used: null,
        resetMs: UNAVAILABLE_RETRY_MS,
        isLocal: true,
        fromMemory: false,
      },
      this,
    );
  }

  denyFromMemory(violated: readonly Violation[]): void {
    this.#deny(violated, false, true);
  }

  #deny(violated: readonly Violation[], isLocal: boolean, fromMemory: boolean): void {
    const { metrics, denials } = this.#parts.enforcement;
    metrics.count('denied');
    this.#decided();
    for (const { policy } of violated) metrics.denied(policy);
    if (metrics.limited.isWatched(this.#arrivedAt)) this.#noteLimited(violated);
    if (this.#isDone) return;
    this.#isDone = true;
    const [first] = violated;
    // In a Cluster, what denied may have been given back a moment later.
    const part = first?.part ?? this.#charged?.charge.parts[0];
    if (part === undefined) throw new Error('only what was charged is denied');
    this.#violated = violated;
    const decision = this.#parts.decisions.add(
      {
        decision: 'deny',
        part,
        limit: first?.limit ?? part.capacity,
        used: first?.used ?? null,
        resetMs: first?.resetMs ?? 0,
        isLocal,
        fromMemory,
      },
      this,
    );
    this.#log('deny', decision);
    denials.write(this.req, this.res, violated, { decision, cors: this.#cors, close: this.#closes });
  }

  #followList(entry: ListEntry): void {
    const { decisions, enforcement } = this.#parts;
    const { metrics } = enforcement;
    metrics.listed[entry.list]++;
    if (entry.list === 'allow') {
      metrics.count('uncovered');
      this.#forward();
      return;
    }
    metrics.count('denied');
    this.#decided();
    const identity = enforcement.addressIdentity(null, this.req.socket, this.#head);
    const { counter } = entry;
    this.#violated = [counter];
    const decision = decisions.add(listedRefusal(counter, identity), this);
    this.#log('deny', decision);
    this.#send(listedReply(entry, decision, { cors: this.#cors, close: this.#closes }));
  }

  #log(decision: LoggedDecision, id: string | null): void {
    if (this.#entry === null) return;
    this.#entry.decision = decision;
    this.#entry.id = id;
    this.#entry.policy = this.#violated[0]?.policy.name ?? null;
  }

  describe(): RefusedRequest {
    const { enforcement } = this.#parts;
    const { file, version } = enforcement.policies;
    return {
      method: this.req.method ?? '',
      target: this.#target,
      violated: this.#violated.map(({ policy }) => policy.name),
      addressFrom: enforcement.addressSource(this.#head, this.connection.origin),
      file,
      policyVersion: version,
    };
  }

  /** Each bucket's identity once. */
  #noteLimited(violated: readonly Violation[]): void {
    const digests = new Set<string>();
    for (const { policy, identity } of this.#charged?.charge.parts ?? [])
      if (violated.some((verdict) => verdict.policy === policy)) digests.add(identity.digest);
    for (const digest of digests) this.#parts.enforcement.metrics.limited.count(digest);
  }

  #refuseBanned({ identity, until }: StandingBan): void {
    const { decisions, enforcement } = this.#parts;
    enforcement.metrics.count('banned');
    this.#decided();
    const resetMs = until - this.#now;
    this.#violated = [BAN];
    const decision = decisions.add(banRefusal(identity, resetMs), this);
    this.#log('banned', decision);
    if (this.#entry !== null) this.#entry.policy = null;
    this.#send(bannedReply(resetMs, decision, { cors: this.#cors, close: this.#closes }));
  }

  /** A client, or all together, holds as much as may be. @returns the decision's id */
  #refuseBusy(name: BoundName, refusal: BoundRefusal): string {
    const { decisions, enforcement, upstream } = this.#parts;
    const { client, connection } = this;
    const counter = boundCounter(name, refusal);
    const identity = enforcement.addressIdentity(this.#charged, connection.socket, this.#head);
    this.#violated = [counter];
    const id = decisions.add(boundRefusal(upstream.bounds[name], refusal, client, counter, identity), this);
    if (this.#entry !== null) this.#entry.id = id;
    return id;
  }

  #decided(): void {
    this.#parts.enforcement.metrics.decisionTime.observe(this.#now - this.#arrivedAt);
  }

  get #now(): Millis {
    return this.#parts.enforcement.options.clock();
  }

  #reserve(spent: Spent, position: number): void {
    const { limiter } = this.#parts.enforcement.options;
    if (this.#charged?.hasOutcomes === true || spent.leases !== null)
      this.#reservation = new Reservation(limiter, spent, position);
  }

  #forward(): void {
    this.#decided();
    if (this.#isDone) {
      this.#reservation?.close();
      return;
    }
    const { connection, req, res } = this;
    const { upstream, clients, enforcement } = this.#parts;
    const head = this.#head;
    this.#forwardedAt = this.#now;
    const headers = enforcement.upstreamHeaders(req.rawHeaders, head, connection.origin);
    this.#trace?.forward(headers, this.#forwardedAt);
    this.#call = new ProxyCall({
      owner: this,
      req,
      res,
      upstream,
      clients,
      client:
        connection.client === null
          ? clients.enter(enforcement.addressOf(head, connection.origin))
          : clients.hold(connection.client),
      head,
      headers,
      target: this.#target,
      cors: this.#cors,
      added: this.#added,
      expectsContinue: this.#options.expectsContinue,
      upgrade: this.#options.upgrade,
    });
    this.#call.start();
  }

  onReplyBegun(status: number): void {
    const { metrics } = this.#parts.enforcement;
    const now = this.#now;
    const upstreamMs = now - this.#forwardedAt;
    metrics.upstreamTime.observe(upstreamMs);
    if (this.#entry !== null) {
      this.#entry.upstreamMs = upstreamMs;
      this.#entry.repliedAt = now;
      if (status === 101) this.#entry.status = status;
    }
    if (this.#charged !== null) this.#parts.enforcement.learn(this.#charged, status);
    this.#reservation?.conclude(status);
  }

  onTunnelClosed(): void {
    this.#reservation?.close();
  }

  onFailed(failure: ProxyFailure): void {
    this.#reservation?.close();
    const decision = failure.kind === 'bound' ? this.#refuseBusy(failure.bound, failure.refusal) : null;
    const options = { cors: this.#cors, close: this.#closes, headers: this.#added, decision };
    this.#send(failureReply(failure, options));
  }

  #refuseMalformed(reason: string): void {
    this.#parts.enforcement.metrics.count('malformed');
    this.#log('malformed', null);
    this.#answer('gateway_bad_request', reason, true);
  }

  #answer(code: Parameters<typeof ownReply>[0], message: string, close = this.#closes): void {
    this.#send(ownReply(code, message, { cors: this.#cors, close, headers: this.#added }));
  }

  #send(reply: OwnReply): void {
    if (this.#isDone) return;
    this.#isDone = true;
    sendOwn(this.req, this.res, reply);
  }

  /** The connection ends with this reply: we are shutting down, or the client holds back the body it announced. */
  get #closes(): boolean {
    const holdsBack = this.#options.expectsContinue && this.#call?.hasContinued !== true;
    return this.#parts.upstream.draining || holdsBack;
  }

  get client(): Client | null {
    return this.#call?.client ?? this.connection.client;
  }

  get isClosed(): boolean {
    return this.#isDone || this.#call?.isClosed === true;
  }

  get isUploading(): boolean {
    return this.#call?.isUploading === true;
  }

  close(): void {
    this.#isDone = true;
    this.#call?.close();
    this.#reservation?.close();
  }

  onDrain(): void {
    this.#call?.onDrain();
  }

  onTick(unreadMs: Millis): void {
    this.#call?.onTick(unreadMs);
  }
}
