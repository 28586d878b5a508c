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
import { applicationAddress } from './redirect.ts';
import { Rest } from './rest.ts';
import { SocketConnection } from './socket-connection.ts';
import { TransferScheduler } from './transfer-scheduler.ts';
import { type OutageLog, UpstreamOutage } from './upstream-outage.ts';
import { UpstreamPool } from './upstream-pool.ts';
import type { UpstreamFault } from './upstream-reason.ts';
import { UpstreamAddress } from './upstream-socket.ts';

const USUAL = {
  /** Time for a connection, with its TLS handshake. */
  connectTimeoutMs: 3000,
  /** Idle connections are kept for less than the 5 s after which Node.js and others close one without saying so before. */
  keepAliveMs: 4000,
  /** Maximum size of the header section of a reply. */
  headerBytesMax: HEADER_BYTES,
  /** A client that sends no part of its body for this long may wait for the reply before it does. */
  headDelayMs: 250,
  /** A reply that takes longer than this counts as a stream. */
  streamAfterMs: 5000,
  /** As long as NGINX waits. A reply that holds the connection which another request needs is cut earlier. */
  unreadTimeoutMs: 60_000,
  /** The gateway then reads on only as fast as the client, which has more than this in the buffers of the systems. */
  replyBufferBytes: 65_536,
};

export interface UpstreamOptions extends Partial<Readonly<typeof USUAL>> {
  readonly origin: string;
  /** Time until the header section of the reply, including the wait for a connection. */
  readonly timeoutMs: Millis;
  readonly clock: Clock;
  readonly bounds: Bounds;
  readonly log: OutageLog;
  readonly collectYoung: () => void;
  /** Opens the protection that the policy file asks for; null if this gateway has none. */
  readonly openProtection: OpenProtection | null;
}

interface BegunReply {
  writeReply(): void;
}

const TICK_MS: Millis = 1000;

export class Upstream {
  readonly options: UpstreamOptions & Readonly<typeof USUAL>;
  readonly bounds: Bounds;
  readonly requests: UpstreamPool;
  readonly uploads: UpstreamPool;
  readonly deadlines: Deadlines;
  /** Calls whose body has not begun. */
  readonly headDelays: Deadlines;
  readonly scheduler: TransferScheduler;
  readonly outage: UpstreamOutage;
  readonly address: URL | null;
  unavailable = 0;
  timeouts = 0;
  /** Protects the application from overload; null if protection is off. */
  protection: Protection | null = null;
  /** Whether the gateway is shutting down. Then every reply closes its client connection. */
  draining = false;
  readonly #connections = new Set<SocketConnection>();
  readonly #ticks: NodeJS.Timeout;
  #begun: BegunReply[] = [];

  constructor(given: UpstreamOptions) {
    const options = { ...USUAL, ...given };
    const { bounds, clock, timeoutMs } = options;
    this.options = options;
    this.bounds = bounds;
    this.deadlines = new Deadlines(timeoutMs, clock);
    this.headDelays = new Deadlines(options.headDelayMs, clock);
    this.scheduler = new TransferScheduler(options.collectYoung);
    this.outage = new UpstreamOutage(options);
    this.address = applicationAddress(options.origin);
    const shared = {
      ...options,
      connectTimeoutMs: Math.min(options.connectTimeoutMs, timeoutMs),
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

  /** Number of requests that wait for a connection. */
  get waiting(): number {
    return this.requests.waiting + this.uploads.waiting;
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
