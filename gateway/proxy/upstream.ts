/**
 * The upstream: its connections by kind of work, what bounds them, and what all requests to it share. Uploads have
 * connections of their own, so that slow senders do not take those of requests that are there; and a reply that turns
 * out to be a long one takes its connection along into a budget of its own.
 */
import type { Bounds } from '#gateway/bounds/bounds.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { BulkTurns } from './bulk-turns.ts';
import { Deadlines } from './deadlines.ts';
import type { UpstreamConnection } from './exchange.ts';
import { LazyConnection } from './lazy-connection.ts';
import { PlainConnection } from './plain-connection.ts';
import { UpstreamPool } from './upstream-pool.ts';

export interface UpstreamOptions {
  /** http://host:port of the upstream; https: for TLS. */
  readonly origin: string;
  /** Until the head of the reply is there, the wait for a free connection included. */
  readonly timeoutMs: Millis;
  readonly clock: Clock;
  readonly bounds: Bounds;
  /** How long an idle connection is kept for an upstream that does not say it (Keep-Alive: timeout=…). */
  readonly keepAliveMs: Millis;
  /** Only tests set it. */
  readonly streamAfterMs?: Millis;
  /** For a client that reads nothing of its reply. */
  readonly unreadTimeoutMs: Millis;
  /** Of a reply that its client does not take, so much is read ahead. */
  readonly replyBufferBytes: number;
  /** Frees the buffers of bodies that have been passed on. */
  readonly collectYoung: () => void;
}

/** A reply that has begun in this turn of the event loop. */
export interface BegunReply {
  /** The turn is over: what is there of the reply goes out, together with the others. */
  writeReply(): void;
}

export interface UpstreamStats {
  /** Requests that wait for a free connection. */
  readonly waiting: number;
  readonly unavailable: number;
  readonly timeouts: number;
}

const CONNECT_TIMEOUT_MS: Millis = 3000;
/** Between two pieces of a reply's body. Finite, or a connection that lost its peer is never given back. */
const BODY_TIMEOUT_MS: Millis = 300_000;
/** A reply that takes longer than this counts as a stream. */
const STREAM_AFTER_MS: Millis = 5000;
/** What an upstream may promise for its idle connections. */
const KEEP_ALIVE_MS_MAX: Millis = 600_000;
/** So much sooner than announced an idle connection is closed: the announcement counts from the upstream's last byte. */
const KEEP_ALIVE_MARGIN_MS: Millis = 1000;
const TICK_MS: Millis = 1000;

export class Upstream {
  readonly options: UpstreamOptions;
  readonly bounds: Bounds;
  readonly streamAfterMs: Millis;
  readonly requests: UpstreamPool;
  /** For bodies that are streamed while they come in. */
  readonly uploads: UpstreamPool;
  /** Of the calls whose reply has not begun. */
  readonly deadlines: Deadlines;
  /** Of bodies that are too large to be passed on at once. */
  readonly bulk: BulkTurns;
  unavailable = 0;
  timeouts = 0;
  /** Told to every reply: we are shutting down, open no further request on this connection. */
  draining = false;
  readonly #connections = new Set<UpstreamConnection>();
  readonly #ticks: NodeJS.Timeout;
  #begun: BegunReply[] = [];

  constructor(options: UpstreamOptions) {
    this.options = options;
    const { bounds, clock, timeoutMs } = options;
    this.bounds = bounds;
    this.streamAfterMs = options.streamAfterMs ?? STREAM_AFTER_MS;
    this.deadlines = new Deadlines(timeoutMs, clock);
    this.bulk = new BulkTurns(options.collectYoung);
    const open = connectionOpener(options, this.bulk);
    const shared = {
      waiting: bounds.waiting,
      open: () => {
        const connection = open(() => this.#connections.delete(connection));
        this.#connections.add(connection);
        return connection;
      },
      clock,
    };
    this.requests = new UpstreamPool({ ...shared, inUse: bounds.upstream_connections });
    this.uploads = new UpstreamPool({ ...shared, inUse: bounds.uploads });
    this.#ticks = setInterval(() => this.#tick(), TICK_MS);
    this.#ticks.unref();
  }

  /** A reply has begun. */
  begin(reply: BegunReply): void {
    if (this.#begun.push(reply) === 1) setImmediate(() => this.#flush());
  }

  stats(): UpstreamStats {
    return {
      waiting: this.requests.waiting + this.uploads.waiting,
      unavailable: this.unavailable,
      timeouts: this.timeouts,
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#ticks);
    await Promise.all([...this.#connections].map((connection) => connection.close()));
  }

  #tick(): void {
    const now = this.options.clock();
    for (const connection of this.#connections) connection.onTick(now);
  }

  #flush(): void {
    const begun = this.#begun;
    this.#begun = [];
    for (const reply of begun) reply.writeReply();
  }
}

type Open = (onClose: () => void) => UpstreamConnection;

function connectionOpener({ origin, timeoutMs, keepAliveMs, clock }: UpstreamOptions, bulk: BulkTurns): Open {
  const { host: authority, hostname, port, protocol } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, '');
  const times = {
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
    bodyTimeoutMs: BODY_TIMEOUT_MS,
    keepAliveMs,
    keepAliveMsMax: KEEP_ALIVE_MS_MAX,
    keepAliveMarginMs: KEEP_ALIVE_MARGIN_MS,
  };
  const openUndici: Open = (onClose) =>
    new LazyConnection({
      ...times,
      origin,
      servername: host,
      onClose,
    });
  if (protocol === 'https:') return openUndici;
  return (onClose) =>
    new PlainConnection({
      ...times,
      host,
      authority,
      port: Number(port) || 80,
      clock,
      garbage: bulk,
      openForUpgrade: () => openUndici(() => undefined),
      onClose,
    });
}

/** The upstream closed a kept-alive connection just when we used it. */
export function isStaleConnection(error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'UPSTREAM_CLOSED' || code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

export function isTimeout(error: Error): boolean {
  return (error as NodeJS.ErrnoException).code === 'ETIMEDOUT';
}
