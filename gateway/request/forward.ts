/**
 * Forwards an admitted request. When its reply begins, the gateway learns whether the application accepts the
 * credential, and whether the request counts. The request counts as in flight until it is over.
 */

import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import { dropNominated } from '#gateway/http/hop-by-hop.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import { upstreamHeaders } from '#gateway/http/request-headers.ts';
import type { Reservation } from '#gateway/limiter/outcome.ts';
import type { RequestTrace } from '#gateway/observe/tracing/tracing.ts';
import { ProxyCall } from '#gateway/proxy/proxy-call.ts';
import type { ProxyCallOptions, ProxyCallOwner, ProxyFailure } from '#gateway/proxy/proxy-call-options.ts';
import type { UpgradeSocket } from '#gateway/proxy/upgrade.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';
import type { Millis } from '#shared/clock.ts';
import type { Enforcement } from './enforcement.ts';
import { learn } from './reading/prove.ts';
import type { Refusable, Refusals } from './refuse.ts';

export interface ForwardingParts {
  readonly enforcement: Enforcement;
  readonly upstream: Upstream;
  readonly clients: Clients;
  readonly refusals: Refusals;
}

export interface RequestOptions {
  /** Whether the client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;
  /** The client's socket, if the client wants to switch protocols; otherwise null. */
  readonly upgrade: UpgradeSocket | null;
}

/** A request that has been admitted. */
export interface Admitted extends Refusable {
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly connection: ClientConnection;
  readonly head: CheckedHead;
  /** Canonical path and query. */
  readonly target: string;
  readonly priority: Priority;
  readonly options: RequestOptions;
  /** The trace of the request; null if it is not traced. */
  readonly trace: RequestTrace | null;
}

/** An admitted request. It is also the options of its ProxyCall, which saves one object for each request. */
export class Forwarding implements ProxyCallOptions, ProxyCallOwner {
  readonly owner: ProxyCallOwner = this;
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly upstream: Upstream;
  readonly clients: Clients;
  readonly client: Client;
  readonly priority: Priority;
  readonly head: CheckedHead;
  readonly headers: string[];
  readonly target: string;
  readonly cors: boolean;
  readonly added: readonly string[];
  readonly expectsContinue: boolean;
  readonly upgrade: UpgradeSocket | null;
  readonly outlivesClient: boolean;
  readonly call: ProxyCall;
  readonly #request: Admitted;
  readonly #enforcement: Enforcement;
  readonly #refusals: Refusals;
  /**
   * Settles the charge by the reply. null if the charge does not depend on it, and no policy counts requests in flight.
   */
  readonly #reservation: Reservation | null;
  readonly #begunAt: Millis;

  /** @param added the gateway's headers for the reply, alternating names and values */
  constructor(
    { enforcement, upstream, clients, refusals }: ForwardingParts,
    request: Admitted,
    added: readonly string[],
    reservation: Reservation | null,
    now: Millis,
  ) {
    const { req, res, connection, head, options } = request;
    const { client } = connection;
    this.req = req;
    this.res = res;
    this.upstream = upstream;
    this.clients = clients;
    this.client = client === null ? clients.enter(request.caller.address.counted()) : clients.hold(client);
    this.priority = request.priority;
    this.head = head;
    this.headers = headersFor(request, enforcement);
    request.trace?.forward(this.headers, now);
    this.target = request.target;
    this.cors = request.cors;
    this.added = added;
    this.expectsContinue = options.expectsContinue;
    this.upgrade = options.upgrade;
    this.outlivesClient = reservation?.isHeld === true || reservation?.awaitsReply === true;
    this.#request = request;
    this.#enforcement = enforcement;
    this.#refusals = refusals;
    this.#reservation = reservation;
    this.#begunAt = now;
    this.call = new ProxyCall(this);
  }

  onReplyBegun(status: number, headers: readonly string[]): void {
    const { metrics, options } = this.#enforcement;
    const { entry, charged } = this.#request;
    const now = options.clock();
    const upstreamMs = now - this.#begunAt;
    metrics.upstreamTime.observe(upstreamMs);
    metrics.replied(status, this.#request.arrivedAt);
    if (entry !== null) {
      entry.upstreamMs = upstreamMs;
      entry.repliedAt = now;
      if (status === 101) entry.status = status;
    }
    if (charged !== null) learn(options.limiter, charged.identified, status);
    this.#reservation?.conclude(status, headers);
  }

  onUnreadReply(headers: readonly string[]): void {
    this.#reservation?.conclude('unknown', headers);
  }

  onUpstreamDone(): void {
    this.#reservation?.conclude('unknown');
    this.#reservation?.close();
  }

  onFailed(failure: ProxyFailure): void {
    if (failure.kind === 'unavailable' || failure.kind === 'timeout')
      this.#enforcement.metrics.replied(null, this.#request.arrivedAt);
    if (this.call.hasReachedUpstream) this.#reservation?.conclude('unknown');
    this.#reservation?.close();
    this.#refusals.failed(this.#request, failure, this.added);
  }

  /** Called when the reply is sent, or the client has left. */
  close(): void {
    if (this.outlivesClient && this.call.abandon()) return;
    if (this.call.hasReachedUpstream) this.#reservation?.conclude('unknown');
    this.call.close();
    this.#reservation?.close();
  }
}

/**
 * Returns the header section for the upstream, as alternating names and values. It has the header that names a plan
 * only if a trusted proxy sent it.
 */
function headersFor({ req, head, connection }: Admitted, { options, table }: Enforcement): string[] {
  const { origin } = connection;
  const headers = upstreamHeaders(req.rawHeaders, head, origin, options.headerFilter);
  if (table.planHeaders.size > 0 && !origin.trusted) dropNominated(headers, table.planHeaders);
  return headers;
}
