/**
 * The upstream: connection pools, bounds, and state that its requests share. Uploads have a pool of their own, so that
 * slow senders do not take connections from other requests. A long-lived reply moves its connection from the pool to
 * the bound for streams.
 */
import type { Bounds } from '#gateway/bounds/bounds.ts';
import type { Lane } from '#gateway/bounds/priority.ts';
import { HEADER_BYTES } from '#gateway/http/header-size.ts';
import type { Protect } from '#gateway/policy/policy-set.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { Deadlines } from './deadlines.ts';
import type { OpenProtection, Protection } from './protected.ts';
import { type ApplicationAddress, applicationAddress } from './redirect.ts';
import { Rest } from './rest.ts';
import { SocketConnection } from './socket-connection.ts';
import { TransferScheduler } from './transfer-scheduler.ts';
import { type OutageLog, UpstreamOutage } from './upstream-outage.ts';
import { UpstreamPool } from './upstream-pool.ts';
import type { UpstreamFault } from './upstream-reason.ts';
import { UpstreamAddress } from './upstream-socket.ts';

export interface UpstreamOptions {
  readonly origin: string;
  /** Time until the header section of the reply, including the wait for a connection. */
  readonly timeoutMs: Millis;
  /** Time for a connection, with its TLS handshake. Default: CONNECT_TIMEOUT_MS. Tests set a longer time. */
  readonly connectTimeoutMs?: Millis;
  readonly clock: Clock;
  readonly bounds: Bounds;
  readonly log: OutageLog;
  /** How long idle connections are kept without `Keep-Alive: timeout=…` of the upstream. Default: KEEP_ALIVE_MS. */
  readonly keepAliveMs?: Millis;
  /** Maximum size of the header section of a reply. Default: HEADER_BYTES. */
  readonly headerBytesMax?: number;
  /** How long the head of a request waits for its body. Default: HEAD_DELAY_MS. */
  readonly headDelayMs?: Millis;
  /** Time after which a reply counts as a stream. Default: STREAM_AFTER_MS. Tests set a shorter time. */
  readonly streamAfterMs?: Millis;
  /** Longest time in which a client reads nothing of its reply. Default: UNREAD_TIMEOUT_MS. */
  readonly unreadTimeoutMs?: Millis;
  /** Bytes that are read ahead of a slow client. Default: REPLY_BUFFER_BYTES. */
  readonly replyBufferBytes?: number;
  readonly collectYoung: () => void;
  /** Opens the protection that the policy file asks for; null if this gateway has none. */
  readonly openProtection: OpenProtection | null;
}

interface BegunReply {
  writeReply(): void;
}

export interface UpstreamStats {
  readonly waiting: number;
  readonly unavailable: number;
  readonly timeouts: number;
}

const CONNECT_TIMEOUT_MS: Millis = 3000;
/** A client that sends no part of its body for this long may wait for the reply before it does. */
const HEAD_DELAY_MS: Millis = 250;
/** A reply that takes longer than this counts as a stream. */
const STREAM_AFTER_MS: Millis = 5000;
/** Less than the 5 s after which Node.js and others close an idle connection without saying so before. */
const KEEP_ALIVE_MS: Millis = 4000;
/** As long as NGINX waits. A reply that holds the connection which another request needs is cut earlier. */
const UNREAD_TIMEOUT_MS: Millis = 60_000;
/** The gateway then reads on only as fast as the client, which has more than this in the buffers of the systems. */
const REPLY_BUFFER_BYTES = 65_536;
const TICK_MS: Millis = 1000;

export class Upstream {
  readonly options: UpstreamOptions;
  readonly bounds: Bounds;
  readonly streamAfterMs: Millis;
  readonly unreadTimeoutMs: Millis;
  readonly replyBufferBytes: number;
  readonly requests: UpstreamPool;
  readonly uploads: UpstreamPool;
  readonly deadlines: Deadlines;
  /** Calls whose body has not begun. */
  readonly headDelays: Deadlines;
  readonly scheduler: TransferScheduler;
  readonly outage: UpstreamOutage;
  readonly address: ApplicationAddress | null;
  unavailable = 0;
  timeouts = 0;
  /** Protects the application from overload; null if protection is off. */
  protection: Protection | null = null;
  /** Whether the gateway is shutting down. Then every reply closes its client connection. */
  draining = false;
  readonly #connections = new Set<SocketConnection>();
  readonly #ticks: NodeJS.Timeout;
  #begun: BegunReply[] = [];

  constructor(options: UpstreamOptions) {
    this.options = options;
    const { bounds, clock, timeoutMs } = options;
    this.bounds = bounds;
    this.streamAfterMs = options.streamAfterMs ?? STREAM_AFTER_MS;
    this.unreadTimeoutMs = options.unreadTimeoutMs ?? UNREAD_TIMEOUT_MS;
    this.replyBufferBytes = options.replyBufferBytes ?? REPLY_BUFFER_BYTES;
    this.deadlines = new Deadlines(timeoutMs, clock);
    this.headDelays = new Deadlines(options.headDelayMs ?? HEAD_DELAY_MS, clock);
    this.scheduler = new TransferScheduler(options.collectYoung);
    this.outage = new UpstreamOutage(options);
    this.address = applicationAddress(options.origin);
    const shared = {
      clock,
      connectTimeoutMs: Math.min(options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS, timeoutMs),
      keepAliveMs: options.keepAliveMs ?? KEEP_ALIVE_MS,
      headerBytesMax: options.headerBytesMax ?? HEADER_BYTES,
      address: new UpstreamAddress(options.origin),
      garbage: this.scheduler,
      rest: new Rest(),
      onClose: (connection: SocketConnection) => void this.#connections.delete(connection),
    };
    const open = (): SocketConnection => {
      const connection = new SocketConnection(shared);
      this.#connections.add(connection);
      return connection;
    };
    const pool = { waiting: bounds.waiting, open, clock };
    this.requests = new UpstreamPool({ ...pool, inUse: bounds.upstream_connections });
    this.uploads = new UpstreamPool({ ...pool, inUse: bounds.uploads });
    this.#ticks = setInterval(() => this.#tick(), TICK_MS);
    this.#ticks.unref();
  }

  /** @param mode null switches protection off. The baseline of the same mode is kept. */
  protect(mode: Protect | null): void {
    if (mode === (this.protection?.mode ?? null)) return;
    this.protection?.close();
    const { clock, bounds, openProtection } = this.options;
    const inUse = bounds.upstream_connections;
    // Fill later, because this may be called from within the parser of a reply.
    const onRaised = () => void setImmediate(() => this.requests.fill());
    const waitingIn = (lane: Lane): number => this.requests.waitingIn(lane);
    this.protection =
      mode === null ? null : (openProtection?.({ mode, inUse, clock, onRaised, waitingIn }) ?? null);
  }

  /** Called for each reply that has begun. */
  begin(reply: BegunReply): void {
    this.outage.answered();
    if (this.#begun.push(reply) === 1) setImmediate(() => this.#flush());
  }

  /** Counts a request that got no reply. */
  failed(kind: 'unavailable' | 'timeout', fault: UpstreamFault | null): void {
    if (kind === 'timeout') this.timeouts++;
    else this.unavailable++;
    if (fault !== null) this.outage.failed(fault);
  }

  stats(): UpstreamStats {
    return {
      waiting: this.requests.waiting + this.uploads.waiting,
      unavailable: this.unavailable,
      timeouts: this.timeouts,
    };
  }

  close(): void {
    clearInterval(this.#ticks);
    for (const connection of this.#connections) connection.close();
  }

  #tick(): void {
    const now = this.options.clock();
    for (const connection of this.#connections) connection.onTick(now);
    this.outage.onTick();
  }

  #flush(): void {
    const begun = this.#begun;
    this.#begun = [];
    for (const reply of begun) reply.writeReply();
  }
}
