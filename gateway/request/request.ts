/**
 * A request to the public listener. limited-request.ts decides it, and forward.ts forwards it. The decision comes
 * before the body is read, so a denied request costs the upstream nothing.
 */

import type { Client } from '#gateway/bounds/clients.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientRequest, ClientResponse, Exchange } from '#gateway/http/client-exchange.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import { announcedBody, type SentBody, TOO_LARGE } from '#gateway/identity/body-field.ts';
import type { Violation } from '#gateway/limiter/decision.ts';
import type { Reservation } from '#gateway/limiter/outcome.ts';
import type { AccessEntry } from '#gateway/observe/access-log/access-entry.ts';
import type { RequestTrace } from '#gateway/observe/tracing/tracing.ts';
import { type OwnReply, sendOwn } from '#gateway/reply/own-reply.ts';
import { isPreflight, sendPreflight } from '#gateway/reply/preflight.ts';
import type { Millis } from '#shared/clock.ts';
import { type Admitted, Forwarding, type ForwardingParts, type RequestOptions } from './forward.ts';
import { LimitedRequest } from './limited-request.ts';
import { probeReply } from './probe.ts';
import { framingOf } from './refuse.ts';
import { whenSmallArrived } from './small-body.ts';

/** A request with its connection, response and log entry. */
export interface Arrival {
  readonly connection: ClientConnection;
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  /** Entry of the access log and the trace; null if the request is neither logged nor traced. */
  readonly entry: AccessEntry | null;
}

export class GatewayRequest extends LimitedRequest implements Exchange, Admitted {
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly connection: ClientConnection;
  options: RequestOptions;
  readonly entry: AccessEntry | null;
  readonly trace: RequestTrace | null;
  readonly #parts: ForwardingParts;
  /** Forwards the request; null until it is admitted. */
  #forwarding: Forwarding | null = null;
  /** The client whose place the request takes while its body arrives. null if the request does not wait. */
  #waiting: Client | null = null;

  constructor(
    { connection, req, res, entry }: Arrival,
    { options, trace }: Pick<GatewayRequest, 'options' | 'trace'>,
    parts: ForwardingParts,
  ) {
    super(parts);
    this.connection = connection;
    this.req = req;
    this.res = res;
    this.#parts = parts;
    this.options = options;
    this.entry = entry;
    this.trace = trace;
    res.exchange = this;
  }

  protected override answersProbe(token: string): boolean {
    const body = probeReply(this, token, this.#parts.enforcement, false);
    if (body === null) return false;
    this.res.writeHead(200, ['Content-Type', 'application/json', 'Cache-Control', 'no-store']);
    this.res.end(body, 'latin1');
    discardBody(this.req.body);
    return true;
  }

  protected pass(added: readonly string[], reservation: Reservation | null, now: Millis): void {
    this.#forwarding = new Forwarding(this.#parts, this, added, reservation, now);
    this.#forwarding.call.start();
  }

  protected override receiveBody(then: (body: SentBody) => void): void {
    const { req, res, head, options } = this;
    const announced = announcedBody(req.rawHeaders, head);
    if (announced.kind !== 'announced' || req.body === null) {
      then(announced.kind === 'announced' ? { kind: 'absent' } : announced);
      return;
    }
    if (!req.body.complete && !this.#beginWaiting()) return;
    if (options.expectsContinue) {
      res.writeContinue();
      this.options = { ...options, expectsContinue: false };
    }
    whenSmallArrived(req.body, (bytes) => {
      this.#stopWaiting();
      then(bytes === null ? TOO_LARGE : { kind: announced.format, bytes });
    });
  }

  /**
   * Takes a place among the waiting requests of the client until the body has arrived.
   *
   * @returns false if no place is free; then the request is refused
   */
  #beginWaiting(): boolean {
    const { clients, upstream, refusals, enforcement } = this.#parts;
    const { waiting } = upstream.bounds;
    const known = this.connection.client;
    const client = known === null ? clients.enter(this.caller.address.counted()) : clients.hold(known);
    const refusal = waiting.take(client);
    if (refusal === null) {
      this.#waiting = client;
      return true;
    }
    clients.leave(client);
    waiting.refused(refusal);
    enforcement.metrics.count('undecided', this.arrivedAt);
    refusals.failed(this, { kind: 'bound', bound: 'waiting', refusal }, []);
    return false;
  }

  #stopWaiting(): void {
    const client = this.#waiting;
    if (client === null) return;
    this.#waiting = null;
    this.#parts.upstream.bounds.waiting.give(client);
    this.#parts.clients.leave(client);
  }

  override answersPreflight(decision: string | null): boolean {
    const { req, res, cors } = this;
    if (!cors || !isPreflight(req.method, req.rawHeaders)) return false;
    sendPreflight(req, res, framingOf(this, decision));
    return true;
  }

  answer(reply: OwnReply): void {
    sendOwn(this.req, this.res, reply);
  }

  override deny(violated: readonly Violation[], decision: string): void {
    const { req, res } = this;
    this.#parts.enforcement.denials.write(req, res, violated, framingOf(this, decision));
  }

  /** Whether the gateway is shutting down, or the client waits for 100 Continue and has not sent its body. */
  get closes(): boolean {
    const holdsBack = this.options.expectsContinue && this.#forwarding?.call.hasContinued !== true;
    return this.#parts.upstream.draining || holdsBack;
  }

  get client(): Client | null {
    return this.#forwarding?.client ?? this.#waiting ?? this.connection.client;
  }

  get isClosed(): boolean {
    return this.isDone || this.#forwarding?.call.isClosed === true;
  }

  get isUploading(): boolean {
    return this.#forwarding?.call.isUploading === true;
  }

  close(): void {
    this.finish();
    if (this.#waiting !== null) this.#parts.enforcement.metrics.count('undecided', this.arrivedAt);
    this.#stopWaiting();
    this.#forwarding?.close();
  }

  onDrain(): void {
    this.#forwarding?.call.onDrain();
  }

  onTick(unreadMs: Millis): void {
    this.#forwarding?.call.onTick(unreadMs);
  }
}
