/**
 * One request to the upstream and its reply.
 *
 * The call owns all resources of its request: place in a queue, deadline, upstream connection, stream, upgrade. It is
 * its own exchange handler, so that requests allocate no closures. Bodies stream both ways with backpressure.
 */
import type { Duplex } from 'node:stream';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { UpstreamCall } from '#gateway/http/client-exchange.ts';
import type { Millis } from '#shared/clock.ts';
import { ClientReply, writeInterim } from './client-reply.ts';
import type { DeadlineEntry, Deadlines } from './deadlines.ts';
import { BrokenReplyError, type ExchangeHandler } from './exchange.ts';
import type { ForwardedRequest, Passage, ProxyFailure } from './forwarded-request.ts';
import { type CallParts, Holdings } from './holdings.ts';
import type { ProtectedCall } from './protected.ts';
import { requestToSend, type UpstreamRequest } from './request-text.ts';
import type { SocketConnection } from './socket-connection.ts';
import { joinSockets } from './upgrade.ts';
import { AWAITED_BYTES_MAX, type BodyOwner, placesFor, UPLOAD_PLACES, Upload } from './upload.ts';
import type { Upstream } from './upstream.ts';
import { failureBy, isRetryable, isStaleConnection, isUnaskedReply } from './upstream-faults.ts';
import type { PoolCall, UpstreamPool } from './upstream-pool.ts';

type State =
  /** Waiting for the request body, for a connection, or for the reply. */
  | 'waiting'
  /** The upstream has begun to reply. */
  | 'replying'
  /** The client has left, and the upstream has not replied yet. */
  | 'abandoned'
  /** The call is over: nothing more will be written. */
  | 'closed';

export class ProxyCall implements ExchangeHandler, PoolCall, DeadlineEntry, BodyOwner, UpstreamCall {
  readonly client: Client;
  /** Without protection all calls have the same priority, and none goes behind. */
  priority: Priority = 'normal';
  isBehind = false;
  retryable = false;
  places = 1;
  /** Whether the upstream may have received a part of the request. */
  hasReachedUpstream = false;
  deadlineAt: Millis = 0;
  earlier: DeadlineEntry | null = null;
  later: DeadlineEntry | null = null;
  readonly request: ForwardedRequest;
  readonly upstream: Upstream;
  readonly passage: Passage;
  readonly #held: Holdings;
  /** The deadline list that contains this call. */
  #deadlines: Deadlines;
  /** Measures the call for the protection; null without protection, and for uploads. */
  #protected: ProtectedCall | null = null;
  #state: State = 'waiting';
  /** The request as it is sent; null until there is a connection. */
  #sent: UpstreamRequest | null = null;
  /** Whether the connection has begun to send the request. */
  #isBegun = false;
  /** The reply to the client; null until it begins. */
  reply: ClientReply | null = null;

  constructor(request: ForwardedRequest, parts: CallParts, passage: Passage) {
    this.request = request;
    this.upstream = parts.upstream;
    this.passage = passage;
    this.client = passage.client;
    this.#deadlines = parts.upstream.deadlines;
    this.#held = new Holdings(passage.client, parts);
  }

  get isClosed(): boolean {
    return this.#state === 'closed' || this.#state === 'abandoned';
  }

  get hasContinued(): boolean {
    return this.#sent !== null;
  }

  get isUploading(): boolean {
    return this.#held.connection !== null && this.#held.pool === this.upstream.uploads;
  }

  /** Sends the request to the upstream. A small body is received completely before a connection is taken. */
  start(): void {
    const { upstream } = this;
    const { req, head, options } = this.request;
    this.retryable = isRetryable(req.method ?? '', head.hasBody);
    const refusal = options.upgrade === null ? null : this.#held.takeUpgrade();
    if (refusal !== null) {
      this.#fail({ kind: 'bound', bound: 'upgrades', refusal });
      return;
    }
    const bodyBytes = head.contentLength ?? Number.POSITIVE_INFINITY;
    if (req.complete || !head.hasBody || req.body === null) this.#enter(upstream.requests);
    else if (bodyBytes > AWAITED_BYTES_MAX || options.continuation !== null) this.#enter(upstream.uploads);
    else {
      req.body.whenComplete(() => this.#enter(upstream.requests));
      this.#waitIn(upstream.headDelays);
    }
  }

  #enter(pool: UpstreamPool): void {
    if (this.#state === 'closed') return;
    const { request, upstream } = this;
    const protection = pool === upstream.requests ? upstream.protection : null;
    if (protection !== null) {
      this.#protected = protection.begin(this.client);
      ({ priority: this.priority, isBehind: this.isBehind } = protection.enter(request.lane));
    }
    this.#waitIn(upstream.deadlines);
    this.#held.pool = pool;
    this.places = pool === upstream.uploads ? UPLOAD_PLACES : placesFor(request.req.body);
    const refusal = pool.enter(this);
    if (refusal === 'total' && protection?.isLowered === true) this.onDisplaced();
    else if (refusal !== null) this.#fail({ kind: 'bound', bound: 'waiting', refusal });
    else if (protection?.mode === 'on' && this.#state === 'waiting' && this.#held.connection === null)
      this.#waitIn(protection.patience[this.priority]);
  }

  #waitIn(deadlines: Deadlines): void {
    this.#deadlines.delete(this);
    this.#deadlines = deadlines;
    deadlines.add(this);
  }

  onDisplaced(): void {
    this.#protected?.protection.refuse(this);
    this.#fail({ kind: 'overloaded', priority: this.priority });
  }

  onConnection(connection: SocketConnection): void {
    this.#held.connection = connection;
    if (this.#deadlines !== this.upstream.deadlines) this.#waitIn(this.upstream.deadlines);
    this.request.options.continuation?.writeContinue();
    this.#sent = requestToSend(this);
    connection.dispatch(this.#sent, this);
  }

  /** The upstream has as much time to read more of an upload as to answer, which begins with the end of the upload. */
  onBodyBlocked(isBlocked: boolean): void {
    if (this.#state !== 'waiting') return;
    if (isBlocked) this.#waitIn(this.upstream.deadlines);
    else this.#deadlines.delete(this);
  }

  onBodyEnd(): void {
    if (this.#state !== 'waiting') return;
    this.#waitIn(this.upstream.deadlines);
    this.#protected?.sent();
  }

  onBegin(): boolean {
    if (this.#state === 'closed') return false;
    this.#isBegun = true;
    this.hasReachedUpstream = true;
    // The upstream gets no blame for a body that arrives slowly.
    if (this.#sent?.body instanceof Upload) this.#deadlines.delete(this);
    else this.#protected?.sent();
    return true;
  }

  onInterim(status: number, reason: string, fields: readonly string[]): void {
    // The application has begun to work on the request.
    this.retryable = false;
    if (this.#state === 'waiting') writeInterim(this.request, status, reason, fields, this.passage.added);
  }

  onHead(statusCode: number, reason: string, fields: readonly string[]): void {
    const { connection } = this.#held;
    if (connection === null) return;
    if (this.#mayRetry && isUnaskedReply(statusCode, fields)) {
      connection.abort(new BrokenReplyError(true));
      return;
    }
    this.#protected?.measure(statusCode < 500);
    if (this.#state === 'abandoned') {
      this.upstream.outage.answered();
      this.request.onUnreadReply(fields);
      // Close the call, because the reply has no reader and may be endless.
      this.close();
      return;
    }
    const { request, upstream } = this;
    this.#deadlines.delete(this);
    const reply = new ClientReply(this, connection, statusCode, reason, fields);
    // Report the status even if the reply cannot be forwarded, because the application has processed the request.
    request.onReplyBegun(statusCode, fields);
    if (reply.isEventStream && !this.#held.isStream) {
      const refusal = this.#held.becomeStream();
      if (refusal !== null) {
        this.#fail({ kind: 'bound', bound: 'streams', refusal });
        return;
      }
    }
    this.reply = reply;
    this.#state = 'replying';
    upstream.begin(this);
  }

  /** Whether the request can be sent again, because the upstream may have closed an idle connection just now. */
  get #mayRetry(): boolean {
    return this.#held.connection?.isFresh === false && this.retryable && this.#state === 'waiting';
  }

  onData(chunk: Buffer): void {
    if (this.#state === 'replying') this.reply?.add(chunk);
  }

  onDrain(): void {
    this.reply?.onDrain();
  }

  onEnd(): void {
    const reply = this.reply;
    reply?.endFlow();
    this.#leaveUpstream();
    if (this.#state !== 'replying' || reply === null) return;
    if (reply.isStreaming) {
      this.close();
      reply.end();
    } else reply.isWhole = true;
  }

  onError(error: Error, hasBegun: boolean): void {
    const sent = this.#sent;
    if (this.#mayRetry && isStaleConnection(error) && sent !== null) {
      this.retryable = false;
      this.#isBegun = false;
      this.#held.connection?.dispatch(sent, this);
      return;
    }
    this.#leaveUpstream();
    if (hasBegun) this.request.onUnreadReply(null);
    if (this.#state === 'closed') return;
    if (this.#state === 'abandoned') this.close();
    else if (this.reply?.isStreaming === true) this.#cut(this.reply);
    else this.#fail(failureBy(error, !this.#isBegun));
  }

  onDeadline(): void {
    const { uploads, headDelays } = this.upstream;
    if (this.#deadlines === headDelays) {
      // The client may wait for the reply before it sends the body.
      const isEmpty = this.request.req.body?.waitingBytes === 0;
      if (isEmpty && uploads.inUse.refusalFor(this.client) === null) this.#enter(uploads);
      return;
    }
    if (this.#state === 'abandoned') {
      this.close();
      return;
    }
    const protection = this.#protected?.protection;
    if (protection !== undefined && this.#deadlines !== this.upstream.deadlines) {
      if (protection.isLowered) this.onDisplaced();
      else this.#waitIn(this.upstream.deadlines);
      return;
    }
    this.#fail(this.#held.failureOfWait());
  }

  #fail(failure: ProxyFailure): void {
    if ('fault' in failure) this.upstream.failed(failure.kind, failure.fault);
    this.close();
    this.request.onFailed(failure);
  }

  /** Writes the received part of the reply, or all of it. */
  writeReply(): void {
    const reply = this.reply;
    if (this.#state !== 'replying' || reply === null || reply.isStreaming) return;
    if (reply.isWhole) {
      this.close();
      reply.writeWhole();
    } else reply.startStreaming();
  }

  onTick(unreadMs: Millis): void {
    const { options, bounds } = this.upstream;
    const hasRoom = bounds.streams.refusalFor(this.client) === null;
    if (this.#protected?.becomesPoll(options.streamAfterMs, hasRoom) === true) {
      this.#held.becomeStream();
      return;
    }
    const reply = this.reply;
    if (this.#state !== 'replying' || reply?.isStreaming !== true) return;
    if (!this.#held.mayKeepConnection(options.clock() - reply.streamingSince, unreadMs)) this.#cut(reply);
  }

  #cut(reply: ClientReply): void {
    this.close();
    reply.cut();
  }

  onUpgrade(fields: readonly string[], socket: Duplex): void {
    const { request, upstream, passage } = this;
    const { upgrade } = request.options;
    this.#leaveUpstream();
    if (this.#state === 'abandoned') request.onUnreadReply(fields);
    if (this.isClosed || upgrade === null) {
      socket.destroy();
      this.close();
      return;
    }
    upstream.outage.answered();
    const giveBack = this.#held.handOverUpgrade();
    request.onReplyBegun(101, fields);
    this.close();
    upgrade.release();
    joinSockets(upgrade, socket, fields, passage.added, upstream.scheduler, this.client, (sentBytes) => {
      giveBack();
      request.onUpstreamDone(sentBytes);
    });
  }

  /**
   * Handles a client that has left while the upstream still works on the request, as many applications do. The upstream
   * keeps its connection until it replies, closes, or times out. Only the header section of the reply is read.
   *
   * @returns false if the caller must close the call: the upstream has not received it or has begun to reply
   */
  abandon(): boolean {
    if (this.#state !== 'waiting' || !this.#isBegun) return this.#state === 'abandoned';
    this.#state = 'abandoned';
    if (this.deadlineAt === 0) this.#waitIn(this.upstream.deadlines);
    return true;
  }

  /** Stops writing and gives everything back. The connection is given back later, when its exchange is over. */
  close(): void {
    if (this.#state === 'closed') return;
    const wasAbandoned = this.#state === 'abandoned';
    this.#state = 'closed';
    this.#protected?.measure(false);
    this.#deadlines.delete(this);
    this.reply?.endFlow();
    if (this.#isBegun) this.#held.connection?.abort();
    this.#held.close(this);
    if (wasAbandoned) this.request.onUpstreamDone(0);
  }

  #leaveUpstream(): void {
    this.#deadlines.delete(this);
    this.#protected?.leave();
    this.#held.giveConnection();
  }
}
