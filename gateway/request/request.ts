/**
 * A request to the public listener. Its story decides it, before its body is read, so a denied request costs the
 * upstream nothing. If it is admitted, a ProxyCall forwards it, and it counts as in flight until it is over.
 */

import type { Client } from '#gateway/bounds/clients.ts';
import type { Lane } from '#gateway/bounds/priority.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientRequest, ClientResponse, Exchange } from '#gateway/http/client-exchange.ts';
import type { HeaderFilter } from '#gateway/http/header-filter.ts';
import { OVER_HEADER } from '#gateway/http/header-names.ts';
import { dropNominated } from '#gateway/http/hop-by-hop.ts';
import { localAuthority } from '#gateway/http/host.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { announcedBody, BODY_BYTES_MAX, type SentBody, TOO_LARGE } from '#gateway/identity/body-field.ts';
import type { Reservation } from '#gateway/limiter/outcome.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { Match } from '#gateway/policy/match.ts';
import { authorityOf } from '#gateway/policy/target.ts';
import type { ForwardedRequest, ProxyFailure, RequestOptions } from '#gateway/proxy/forwarded-request.ts';
import type { CallParts } from '#gateway/proxy/holdings.ts';
import { ProxyCall } from '#gateway/proxy/proxy-call.ts';
import type { Refusal } from '#gateway/refusals/refusal.ts';
import type { DenialWriter } from '#gateway/reply/denial.ts';
import { type Framing, sendOwn } from '#gateway/reply/own-reply.ts';
import { isPreflight, preflightReply } from '#gateway/reply/preflight.ts';
import { refusalReply } from '#gateway/reply/refusal-reply.ts';
import type { RequestFacts } from './events.ts';
import { corsOf } from './refuse.ts';
import { Story, type StoryParts, type Way } from './story.ts';

/** A request with its connection, response and log entry. */
export interface Arrival {
  readonly connection: ClientConnection;
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  /** Entry of the access log; null if the request is not logged. */
  readonly entry: AccessEntry | null;
}

export interface ForwardingParts extends StoryParts, CallParts {
  readonly denials: DenialWriter;
  /** Returns the order of an admitted request among those that wait for the application. */
  readonly rankOf: (request: RequestFacts) => Lane;
}

export class GatewayRequest implements Way, Exchange, ForwardedRequest {
  readonly story: Story;
  readonly takesPages = true;
  readonly isVouchedFor = false;
  readonly isAsked = false;
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly connection: ClientConnection;
  options: RequestOptions;
  readonly entry: AccessEntry | null;
  readonly #parts: ForwardingParts;
  /** Forwards the request; null until it is admitted. */
  call: ProxyCall | null = null;
  /** Settles the charge by the reply. null if it does not depend on it, and no policy counts requests in flight. */
  #reservation: Reservation | null = null;
  /** The client whose place the request takes while its body arrives. null if the request does not wait. */
  #waiting: Client | null = null;

  constructor({ connection, req, res, entry }: Arrival, options: RequestOptions, parts: ForwardingParts) {
    this.connection = connection;
    this.req = req;
    this.res = res;
    this.#parts = parts;
    this.options = options;
    this.entry = entry;
    this.story = new Story(this, parts);
    res.exchange = this;
  }

  answerProbe(seen: string): void {
    this.res.writeHead(200, ['Content-Type', 'application/json', 'Cache-Control', 'no-store']);
    this.res.end(seen, 'latin1');
    discardBody(this.req.body);
  }

  pass(added: readonly string[], reservation: Reservation | null): void {
    const headers = this.#upstreamHeaders();
    const outlivesClient = reservation?.isHeld === true || reservation?.awaitsReply === true;
    this.#reservation = reservation;
    this.call = new ProxyCall(this, this.#parts, { client: this.#enter(), headers, added, outlivesClient });
    this.call.start();
  }

  /** The header section has the header that names a plan only if a trusted proxy sent it. */
  #upstreamHeaders(): string[] {
    const { options, table } = this.#parts.enforcement;
    const { origin } = this.connection;
    // The authority of a target in absolute form replaces Host (RFC 9112 3.2.2). The application must not take its own
    // address for the host of a request of HTTP/1.0 without one, and tell it to the client in links and redirects.
    const named = authorityOf(this.req.url ?? '') ?? this.head.host;
    const host = named ?? localAuthority(this.req.socket, origin.scheme);
    const headers = upstreamHeaders(this.req.rawHeaders, this.head, origin, options.headerFilter, host);
    if (table.planHeaders.size > 0 && !origin.trusted) dropNominated(headers, table.planHeaders);
    // Added last, so that nothing in the request can remove it.
    const { allowed } = this.story;
    if (allowed !== null && allowed.marks.length > 0)
      headers.push(OVER_HEADER, allowed.marks.map(({ name }) => name).join(', '));
    return headers;
  }

  /** The client that holds resources for this request. It must be left again. */
  #enter(): Client {
    const { clients } = this.#parts;
    const { client } = this.connection;
    return client === null ? clients.enter(this.story.caller.address.counted()) : clients.hold(client);
  }

  onReplyBegun(status: number, headers: readonly string[]): void {
    this.story.replied(status, headers);
    this.#reservation?.conclude(status, headers);
  }

  onUnreadReply(headers: readonly string[] | null): void {
    this.#reservation?.conclude('unknown', headers ?? [], headers !== null);
  }

  onUpstreamDone(sentBytes: number): void {
    this.#reservation?.conclude('unknown');
    this.#reservation?.close(sentBytes);
  }

  onFailed(failure: ProxyFailure): void {
    if (this.call?.hasReachedUpstream === true) this.#reservation?.conclude('unknown');
    this.#reservation?.close();
    this.story.refuse(this.#refusalBy(failure));
  }

  #refusalBy(failure: ProxyFailure): Refusal {
    const { bounds } = this.#parts.upstream;
    const { client, lane } = this;
    switch (failure.kind) {
      case 'bound':
        return { kind: 'bound', bound: bounds[failure.bound], refusal: failure.refusal, client };
      case 'overloaded':
        return { ...failure, bound: bounds.upstream_connections, as: lane.as };
      default:
        return failure;
    }
  }

  /**
   * Waits for a small body. Nothing of it is taken, so it is forwarded like any other. A slow sender holds only its
   * connection, and connection-watch.ts cuts it.
   */
  receiveBody(then: (body: SentBody) => void): void {
    const { req, head, options } = this;
    const { body } = req;
    const announced = announcedBody(req.rawHeaders, head);
    if (announced.kind !== 'announced' || body === null) {
      then(announced.kind === 'announced' ? { kind: 'absent' } : announced);
      return;
    }
    if (!body.complete && !this.#beginWaiting()) return;
    if (options.continuation !== null) {
      options.continuation.writeContinue();
      this.options = { ...options, continuation: null };
    }
    body.onArrival = () => {
      const isTooLarge = body.waitingBytes > BODY_BYTES_MAX;
      if (!isTooLarge && !body.complete) return;
      body.onArrival = null;
      this.#stopWaiting();
      then(isTooLarge ? TOO_LARGE : { kind: announced.format, bytes: body.look() });
    };
    body.onArrival(0);
  }

  /**
   * Takes a place among the waiting requests of the client until the body has arrived.
   *
   * @returns false if no place is free; then the request is refused
   */
  #beginWaiting(): boolean {
    const { clients, upstream } = this.#parts;
    const { waiting } = upstream.bounds;
    const client = this.#enter();
    const refusal = waiting.take(client);
    if (refusal === null) {
      this.#waiting = client;
      return true;
    }
    clients.leave(client);
    waiting.refused(refusal);
    this.story.refuse({ kind: 'bound', bound: waiting, refusal, client: this.client });
    return false;
  }

  #stopWaiting(): void {
    const client = this.#waiting;
    if (client === null) return;
    this.#waiting = null;
    this.#parts.upstream.bounds.waiting.give(client);
    this.#parts.clients.leave(client);
  }

  get head(): CheckedHead {
    return this.story.head;
  }

  get match(): Match {
    return this.story.match;
  }

  get lane(): Lane {
    return this.#parts.rankOf(this.story);
  }

  get exposesLimits(): boolean {
    return corsOf(this.story, this.#parts.enforcement).exposesLimits;
  }

  refuse(refusal: Refusal, framing: Framing): void {
    const { req, res } = this;
    const { decision, cors } = framing;
    const mayBePreflight = cors.origin !== null && refusal.kind !== 'malformed';
    if (mayBePreflight && isPreflight(req.method, req.rawHeaders))
      sendOwn(res, preflightReply(framing, req.rawHeaders));
    else if (refusal.kind === 'limit' && decision !== null)
      this.#parts.denials.write(res, refusal, framing, decision);
    else sendOwn(res, refusalReply(refusal, framing, this.call?.passage.added));
  }

  /** Whether the gateway is shutting down, or the client waits for 100 Continue and has not sent its body. */
  get closes(): boolean {
    const holdsBack = this.options.continuation !== null && this.call?.hasContinued !== true;
    return this.#parts.upstream.draining || holdsBack;
  }

  get client(): Client | null {
    return this.call?.client ?? this.#waiting ?? this.connection.client;
  }

  get isClosed(): boolean {
    return this.story.isOver || this.call?.isClosed === true;
  }

  /** Called when the reply is sent, or the client has left. */
  close(): void {
    this.story.close();
    this.#stopWaiting();
    const { call } = this;
    if (call === null || (call.passage.outlivesClient && call.abandon())) return;
    if (call.hasReachedUpstream) this.#reservation?.conclude('unknown');
    call.close();
    this.#reservation?.close(call.reply?.sentBytes ?? 0);
  }
}

/**
 * Builds the header section that is forwarded. The fields that frame the body are added when the request is written.
 *
 * @param rawHeaders alternating names and values, as node:http gives them
 * @param host value of Host
 * @returns alternating names and values
 */
function upstreamHeaders(
  rawHeaders: readonly string[],
  head: CheckedHead,
  origin: RequestOrigin,
  filter: HeaderFilter,
  host: string,
): string[] {
  const { forwardedFor, forwardedProto, forwardedHost } = head;
  const headers: string[] = ['Host', host];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (!filter.stops(name, origin.trusted)) headers.push(name, rawHeaders[i + 1] ?? '');
  }
  if (head.nominated !== null) dropNominated(headers, head.nominated);

  headers.push('X-Forwarded-For', forwardedFor === '' ? origin.peer : `${forwardedFor}, ${origin.peer}`);
  headers.push(
    'X-Forwarded-Proto',
    origin.trusted && forwardedProto !== undefined ? forwardedProto : origin.scheme,
  );
  headers.push('X-Forwarded-Host', origin.trusted && forwardedHost !== undefined ? forwardedHost : host);
  return headers;
}
