/** A request to a rung. It takes the steps of a Story up to the last one of the rung. */
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import { prefersHtml } from '#gateway/http/accept.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientRequest, ClientResponse, Exchange } from '#gateway/http/client-exchange.ts';
import type { DateField } from '#gateway/http/date-field.ts';
import type { SharedReply } from '#gateway/http/shared-reply.ts';
import { decide, knownViolations, type Violation } from '#gateway/limiter/decision.ts';
import type { LimitListener, Spent } from '#gateway/limiter/limiter.ts';
import type { ForwardedRequest } from '#gateway/proxy/forwarded-request.ts';
import { ProxyCall } from '#gateway/proxy/proxy-call.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';
import { DECISION_ID_LENGTH } from '#gateway/refusals/decision-ids.ts';
import { limitRefusal } from '#gateway/refusals/refusal.ts';
import { type Cors, UNREAD } from '#gateway/reply/cors.ts';
import type { DenialWriter } from '#gateway/reply/denial.ts';
import { limitHeaders } from '#gateway/reply/limit-headers.ts';
import type { OwnReply } from '#gateway/reply/own-reply.ts';
import type { Enforcement } from '#gateway/request/enforcement.ts';
import type { Caller } from '#gateway/request/reading/caller.ts';
import { locate, NOWHERE, type ReadableRequest, read } from '#gateway/request/reading/read.ts';
import { upstreamHeaders } from '#gateway/request/request-headers.ts';
import { BareUpstream } from './bare-upstream.ts';
import type { Step } from './steps.ts';

/** Stands for the id of a refusal. */
export const DECISION = 'rung'.padEnd(DECISION_ID_LENGTH, '~');
const NOTHING: readonly string[] = [];

export interface Parts {
  readonly steps: ReadonlySet<Step>;
  /** Whether the requests are admitted, and so forwarded. */
  readonly forwards: boolean;
  readonly reply: OwnReply;
  /** The same reply, without the limit headers of a request. */
  readonly shared: SharedReply;
  readonly date: DateField;
  readonly enforcement: Enforcement;
  readonly upstream: Upstream;
  readonly clients: Clients;
  readonly denials: DenialWriter;
  readonly bareUpstreams: WeakMap<ClientConnection, BareUpstream>;
  readonly upstreamPort: number;
}

export class RungRequest implements ReadableRequest, LimitListener, ForwardedRequest, Exchange {
  readonly connection: ClientConnection;
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly options = { continuation: null, upgrade: null };
  readonly isVouchedFor = false;
  readonly lane = { priority: 'normal', isBehind: false } as const;
  readonly sentBody = null;
  head = NOWHERE.head;
  match = NOWHERE.match;
  host = NOWHERE.host;
  presented = NOWHERE.presented;
  cors: Cors = UNREAD;
  call: ProxyCall | null = null;
  readonly #parts: Parts;

  constructor(connection: ClientConnection, req: ClientRequest, res: ClientResponse, parts: Parts) {
    this.connection = connection;
    this.req = req;
    this.res = res;
    this.#parts = parts;
    res.exchange = this;
  }

  get exposesLimits(): boolean {
    return this.cors.exposesLimits;
  }

  get caller(): Caller {
    return this.#parts.enforcement.callerOf(this.connection.origin, this.head.forwardedFor);
  }

  run(): void {
    const { enforcement } = this.#parts;
    if (!this.#has('match')) {
      this.#end();
      return;
    }
    const located = locate(enforcement.table, this.req, this.connection.origin);
    if (located.kind === 'malformed') throw new Error(located.reason);
    this.head = located.head;
    this.match = located.match;
    this.host = located.host;
    this.presented = located.presented;
    this.cors = enforcement.table.cors.on(this.req.method ?? '', located.match.path, this.req.rawHeaders);
    if (!this.#has('identify')) {
      this.#end();
      return;
    }
    const reading = read(this, enforcement.options);
    if (reading.kind !== 'charged') throw new Error(`the request is ${reading.kind}`);
    if (!this.#has('decide')) {
      this.#end();
      return;
    }
    const { limiter } = enforcement.options;
    const exhausted = limiter.knownExhausted(reading.charge);
    if (exhausted === null) limiter.spend(reading.charge, this);
    else this.#deny(knownViolations(exhausted));
  }

  onSpent(spent: Spent, position: number): void {
    const decision = decide(spent, position);
    if (decision.kind === 'deny') this.#deny(decision.violated);
    else if (this.#parts.forwards) this.#admit(this.#has('text') ? limitHeaders(decision.verdicts) : NOTHING);
    else {
      // The limit is not reached yet.
      this.res.writeHead(200, []);
      this.res.end();
    }
  }

  #deny(violated: readonly Violation[]): void {
    const { denials, enforcement } = this.#parts;
    if (!this.#has('text')) {
      this.#end();
      return;
    }
    const page = prefersHtml(this.req.rawHeaders) ? enforcement.table.page : null;
    const refusal = limitRefusal(violated, [], 'store', enforcement.options.randomInt);
    const framing = { cors: this.cors, close: false, page, decision: null };
    denials.write(this.req, this.res, refusal, framing, DECISION);
  }

  #admit(added: readonly string[]): void {
    const { enforcement, clients } = this.#parts;
    const { origin, client } = this.connection;
    if (!this.#has('text') || client === null) {
      this.#end();
      return;
    }
    const { host = '' } = this.head;
    const { headerFilter } = enforcement.options;
    const headers = upstreamHeaders(this.req.rawHeaders, this.head, origin, headerFilter, host);
    if (!this.#has('forward')) {
      this.#end(added);
      return;
    }
    const passage = { client: clients.hold(client), headers, added, outlivesClient: false };
    this.call = new ProxyCall(this, this.#parts, passage);
    this.call.start();
  }

  #has(step: Step): boolean {
    return this.#parts.steps.has(step);
  }

  /** @param added limit headers, instead of the fixed ones */
  #end(added: readonly string[] = NOTHING): void {
    const { forwards, bareUpstreams, upstreamPort } = this.#parts;
    if (!forwards) {
      this.#answer(added);
      return;
    }
    let bare = bareUpstreams.get(this.connection);
    if (bare === undefined) {
      bare = new BareUpstream(upstreamPort, this.connection.socket);
      bareUpstreams.set(this.connection, bare);
    }
    bare.ask(`GET ${this.req.url} HTTP/1.1\r\nHost: bench\r\n\r\n`, () => this.#answer(added));
  }

  #answer(added: readonly string[]): void {
    const { reply, shared, date } = this.#parts;
    if (added.length === 0) {
      this.res.endShared(shared, DECISION, date.text());
      return;
    }
    this.res.writeHead(reply.status, ['Content-Type', 'application/json', ...added]);
    this.res.end(reply.body, 'latin1');
  }

  onStoreUnavailable(): void {
    this.res.destroy();
  }

  onReplyBegun(): void {}
  onUnreadReply(): void {}
  onUpstreamDone(): void {}
  onFailed(): void {
    this.res.destroy();
  }

  get client(): Client | null {
    return this.call?.client ?? null;
  }

  get isClosed(): boolean {
    return this.call?.isClosed === true;
  }

  close(): void {
    this.call?.close();
  }
}
