/**
 * One request to the upstream and its reply.
 *
 * The call owns all resources of its request: place in a queue, deadline, upstream connection, stream, upgrade. It is
 * its own exchange handler, so that requests allocate no closures. Bodies stream both ways with backpressure.
 */
import type { Duplex } from 'node:stream';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import { CLOSE } from '#gateway/http/hop-by-hop.ts';
import type { Millis } from '#shared/clock.ts';
import { ClientReply } from './client-reply.ts';
import type { DeadlineEntry, Deadlines } from './deadlines.ts';
import {
  BadReplyError,
  BrokenReplyError,
  type Exchange,
  type ExchangeHandler,
  type UpstreamConnection,
  type UpstreamRequest,
} from './exchange.ts';
import { Holdings } from './holdings.ts';
import { ProtectedCall } from './protected-call.ts';
import type { ProxyCallOptions, ProxyFailure } from './proxy-call-options.ts';
import { AWAITED_BYTES_MAX, type BodyOwner, whenArrived } from './request-body.ts';
import { clientHeaders } from './response-headers.ts';
import { joinSockets } from './upgrade.ts';
import { isStaleConnection, isTimeout } from './upstream.ts';
import type { PoolCall, UpstreamPool } from './upstream-pool.ts';
import { upstreamRequest } from './upstream-request.ts';

/** If other requests wait for a connection, a client that reads nothing for this time loses its own. */
const UNREAD_MS_MAX_UNDER_PRESSURE: Millis = 2000;
const ABORTED = new Error('the call is closed');
const RETRIED_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

type State =
  /** Waiting for the request body, for a connection, or for the reply. */
  | 'waiting'
  /** The upstream has begun to reply. */
  | 'replying'
  /** The client has left, and the upstream has not replied yet. */
  | 'abandoned'
  /** The call is over: nothing more will be written. */
  | 'closed';

export class ProxyCall implements ExchangeHandler, PoolCall, DeadlineEntry, BodyOwner {
  readonly client: Client;
  /** Without protection all calls have the same priority. */
  priority: Priority = 'normal';
  retryable = false;
  /** Whether the upstream may have received a part of the request. */
  hasReachedUpstream = false;
  deadlineAt: Millis = 0;
  earlier: DeadlineEntry | null = null;
  later: DeadlineEntry | null = null;

  readonly #options: ProxyCallOptions;
  readonly #held: Holdings;
  /** The deadline list that contains this call. */
  #deadlines: Deadlines;
  /** Measures the call for the protection; null without protection, and for uploads. */
  #protected: ProtectedCall | null = null;
  #state: State = 'waiting';
  #request: UpstreamRequest | null = null;
  #exchange: Exchange | null = null;
  /** The reply to the client; null until it begins. */
  #reply: ClientReply | null = null;

  constructor(options: ProxyCallOptions) {
    this.#options = options;
    this.client = options.client;
    this.#deadlines = options.upstream.deadlines;
    this.#held = new Holdings(options.client, options.upstream, options.clients);
  }

  get isClosed(): boolean {
    return this.#state === 'closed' || this.#state === 'abandoned';
  }

  get hasContinued(): boolean {
    return this.#request !== null;
  }

  get isUploading(): boolean {
    return this.#held.connection !== null && this.#held.pool === this.#options.upstream.uploads;
  }

  /** Sends the request to the upstream. A small body is received completely before a connection is taken. */
  start(): void {
    const { req, upstream, head, upgrade, expectsContinue } = this.#options;
    this.retryable = !head.hasBody && RETRIED_METHODS.has(req.method ?? '');
    const refusal = upgrade === null ? null : this.#held.takeUpgrade();
    if (refusal !== null) {
      this.#fail({ kind: 'bound', bound: 'upgrades', refusal });
      return;
    }
    const { body } = req;
    const bodyBytes = head.contentLength ?? Number.POSITIVE_INFINITY;
    if (req.complete || !head.hasBody || body === null) this.#enter(upstream.requests);
    else if (bodyBytes > AWAITED_BYTES_MAX || expectsContinue) this.#enter(upstream.uploads);
    else whenArrived(body, () => this.#enter(upstream.requests));
  }

  #enter(pool: UpstreamPool): void {
    if (this.#state === 'closed') return;
    const { upstream, priority } = this.#options;
    const protection = pool === upstream.requests ? upstream.protection : null;
    this.#held.pool = pool;
    if (protection !== null) {
      this.#protected = new ProtectedCall(protection, this.client, upstream.options.clock);
      this.priority = protection.enter(priority);
    }
    this.#waitIn(upstream.deadlines);
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
    const { priority } = this;
    this.#protected?.protection.refuse(priority);
    this.#fail({ kind: 'overloaded', priority });
  }

  onConnection(connection: UpstreamConnection): void {
    this.#held.connection = connection;
    const { deadlines } = this.#options.upstream;
    if (this.#deadlines !== deadlines) this.#waitIn(deadlines);
    if (this.#options.expectsContinue) this.#options.res.writeContinue();
    const request = upstreamRequest(this.#options, this);
    this.#request = request;
    connection.dispatch(request, this);
  }

  onBodySent(): void {
    this.hasReachedUpstream = true;
  }

  /** The upstream's time to answer starts when the whole upload has been sent. */
  onBodyEnd(): void {
    if (this.#state !== 'waiting') return;
    this.#waitIn(this.#options.upstream.deadlines);
    this.#protected?.sent();
  }

  onBegin(exchange: Exchange): boolean {
    if (this.#state === 'closed') return false;
    this.#exchange = exchange;
    const body = this.#request?.body ?? null;
    if (body === null || Buffer.isBuffer(body)) {
      this.hasReachedUpstream = true;
      this.#protected?.sent();
    } else this.#deadlines.delete(this);
    return true;
  }

  onHead(exchange: Exchange, statusCode: number, reason: string, fields: readonly string[]): void {
    if (statusCode === 408 && this.#mayBeUnasked(fields)) {
      exchange.abort(new BrokenReplyError(true));
      return;
    }
    this.#protected?.measure(statusCode < 500);
    if (this.#state === 'abandoned') {
      this.#options.owner.onUnreadReply(fields);
      // Close the call, because the reply has no reader and may be endless.
      this.close();
      return;
    }
    const { upstream, owner, added, cors } = this.#options;
    this.#deadlines.delete(this);
    const head = clientHeaders(fields, added, statusCode, cors);
    if (head.isCoded) {
      owner.onUnreadReply(fields);
      this.#failUnavailable("the upstream's reply has a transfer coding that was not asked for");
      return;
    }
    // Report the status even if the reply cannot be forwarded, because the application has processed the request.
    owner.onReplyBegun(statusCode, fields);
    if (head.isEventStream && !this.#held.isStream) {
      const refusal = this.#held.becomeStream();
      if (refusal !== null) {
        this.#fail({ kind: 'bound', bound: 'streams', refusal });
        return;
      }
    }
    if (upstream.draining) head.headers.push('Connection', 'close');
    this.#reply = new ClientReply(this.#options, exchange, statusCode, reason, head);
    this.#state = 'replying';
    upstream.begin(this);
  }

  /**
   * Whether a reply may belong to no request. An upstream that closes an idle connection may first send 408 (RFC 9110
   * 15.5.9), just when the gateway sends the next request on it.
   */
  #mayBeUnasked(fields: readonly string[]): boolean {
    const isKept = this.#held.connection?.isFresh === false;
    return (
      isKept &&
      this.retryable &&
      this.#state === 'waiting' &&
      fields.some(
        (name, i) => i % 2 === 0 && name.toLowerCase() === 'connection' && CLOSE.test(fields[i + 1] ?? ''),
      )
    );
  }

  onData(_: Exchange, chunk: Buffer): void {
    if (this.#state === 'replying') this.#reply?.add(chunk);
  }

  onDrain(): void {
    this.#reply?.onDrain();
  }

  onEnd(): void {
    const reply = this.#reply;
    reply?.endFlow();
    this.#leaveUpstream();
    if (this.#state !== 'replying' || reply === null) return;
    if (reply.isStreaming) {
      this.close();
      reply.end();
    } else reply.isWhole = true;
  }

  onError(error: Error, begun: readonly string[]): void {
    const { req, owner } = this.#options;
    const request = this.#request;
    const isKept = this.#held.connection?.isFresh === false;
    if (
      isKept &&
      this.#state === 'waiting' &&
      this.retryable &&
      isStaleConnection(error) &&
      request !== null
    ) {
      this.retryable = false;
      this.#exchange = null;
      this.#held.connection?.dispatch(request, this);
      return;
    }
    this.#leaveUpstream();
    if (begun.length > 0) owner.onUnreadReply(begun);
    if (this.#state === 'closed') return;
    if (this.#state === 'abandoned') this.close();
    else if (this.#reply?.isStreaming === true) this.#cut(this.#reply);
    else if ((req.body?.errored ?? null) !== null) this.#fail({ kind: 'broken-body' });
    else if (isTimeout(error)) this.#failInTime();
    else
      this.#failUnavailable(
        error instanceof BadReplyError
          ? error.message
          : 'the upstream cannot be reached or broke off its reply',
      );
  }

  #failUnavailable(reason: string): void {
    this.#options.upstream.unavailable++;
    this.#fail({ kind: 'unavailable', reason });
  }

  onDeadline(): void {
    if (this.#state === 'abandoned') {
      this.close();
      return;
    }
    const protection = this.#protected?.protection;
    if (protection !== undefined && this.#deadlines !== this.#options.upstream.deadlines) {
      if (protection.isLowered) this.onDisplaced();
      else this.#waitIn(this.#options.upstream.deadlines);
      return;
    }
    const pool = this.#held.pool;
    const refusal = pool?.inUse.refusalFor(this.client) ?? null;
    const isWaiting = this.#held.connection === null && pool !== null;
    // A request that waited because of its client's own share, or for an upload slot, did not wait for the upstream.
    if (isWaiting && refusal !== null && (refusal !== 'total' || pool === this.#options.upstream.uploads)) {
      pool.inUse.refused(refusal);
      this.#fail({ kind: 'bound', bound: pool.inUse.name, refusal });
    } else this.#failInTime();
  }

  #failInTime(): void {
    this.#options.upstream.timeouts++;
    this.#fail({ kind: 'timeout' });
  }

  #fail(failure: ProxyFailure): void {
    this.close();
    this.#options.owner.onFailed(failure);
  }

  /** Writes the received part of the reply, or all of it. */
  writeReply(): void {
    const reply = this.#reply;
    if (this.#state !== 'replying' || reply === null || reply.isStreaming) return;
    if (reply.isWhole) {
      this.close();
      reply.writeWhole();
    } else reply.startStreaming();
  }

  /** Called regularly. A slow or unread reply must not keep a connection that another request waits for. */
  onTick(unreadMs: Millis): void {
    const { options, bounds, streamAfterMs } = this.#options.upstream;
    const { streams } = bounds;
    const refusal = streams.refusalFor(this.client);
    if (this.#protected?.becomesPoll(streamAfterMs, refusal === null) === true) {
      this.#held.becomeStream();
      return;
    }
    const { connection, isStream, pool } = this.#held;
    const reply = this.#reply;
    if (this.#state !== 'replying' || reply?.isStreaming !== true) return;
    if (connection === null || isStream || pool === null) return;
    const isNeeded = pool.pressure > 0;
    if (isNeeded && unreadMs >= UNREAD_MS_MAX_UNDER_PRESSURE) {
      pool.inUse.refused('total');
      this.#cut(reply);
    } else if (options.clock() - reply.streamingSince >= streamAfterMs) {
      if (refusal === null) this.#held.becomeStream();
      else if (isNeeded) {
        streams.refused(refusal);
        this.#cut(reply);
      }
    }
  }

  #cut(reply: ClientReply): void {
    this.close();
    reply.cut();
  }

  onUpgrade(fields: readonly string[], socket: Duplex): void {
    const { owner, upgrade, added, upstream } = this.#options;
    this.#leaveUpstream();
    if (this.#state === 'abandoned') owner.onUnreadReply(fields);
    if (this.isClosed || upgrade === null) {
      socket.destroy();
      this.close();
      return;
    }
    const giveBack = this.#held.handOverUpgrade();
    owner.onReplyBegun(101, fields);
    this.close();
    upgrade.release();
    joinSockets(upgrade, socket, fields, added, upstream.scheduler, this.client, () => {
      giveBack();
      owner.onUpstreamDone();
    });
  }

  /**
   * Handles a client that has left while the upstream still works on the request, as many applications do. The upstream
   * keeps its connection until it replies, closes, or times out. Only the header section of the reply is read.
   *
   * @returns false if the upstream has not received the request or has begun to reply; then the caller must close the
   * call
   */
  abandon(): boolean {
    if (this.#state !== 'waiting' || this.#exchange === null || !this.hasReachedUpstream)
      return this.#state === 'abandoned';
    this.#state = 'abandoned';
    if (this.deadlineAt === 0) this.#waitIn(this.#options.upstream.deadlines);
    return true;
  }

  /** Stops writing and gives everything back. The connection is given back later, when its exchange is over. */
  close(): void {
    if (this.#state === 'closed') return;
    const wasAbandoned = this.#state === 'abandoned';
    this.#state = 'closed';
    this.#protected?.measure(false);
    this.#deadlines.delete(this);
    this.#reply?.endFlow();
    if (this.#held.connection !== null) this.#exchange?.abort(ABORTED);
    this.#held.close(this);
    if (wasAbandoned) this.#options.owner.onUpstreamDone();
  }

  #leaveUpstream(): void {
    this.#deadlines.delete(this);
    this.#protected?.leave();
    this.#held.giveConnection();
  }
}
