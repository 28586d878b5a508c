/**
 * What one client may send beside its requests: frames that open, move and close windows, ask for a sign of life, set
 * priorities, or mean nothing. Each costs the library below us a fraction of a microsecond, so that nobody notices one, and
 * 100 MB of them in a second are all that an event loop can do. They are known by their sum alone: what has been read,
 * less what became header sections and bodies.
 */
import { counter, type Sample } from '#gateway/observe/metrics/metrics.ts';
import type { Millis } from '#shared/clock.ts';

interface FrameShareOptions {
  /** A client has gone beyond its share; its connections are cut. */
  readonly onFlood: () => void;
  readonly penaltyMs?: Millis;
}

/** A connection of HTTP/2, as far as frames are counted. */
interface FramedConnection {
  /** Bytes that came on it, decrypted. */
  read(): number;
  cut(): void;
}

/** Of one connection. */
export interface FrameCount {
  /** A request began. */
  requested(): void;
  /** So many bytes of a body came in one frame. */
  received(bytes: number): void;
  /** A body was cut because of its small pieces; what follows it on the way is still to be handled. */
  cutBody(): void;
  /** The connection is closed. */
  end(): void;
}

const CHECK_MS: Millis = 100;
/** 2 MiB a second are 160,000 frames of the smallest kind: a few hundredths of a second to handle. */
const BYTES_PER_CHECK = (2 * 1024 * 1024 * CHECK_MS) / 1000;
const BURST_BYTES = 2 * 1024 * 1024;
/** Of a request, its header section and what frames it. To handle one costs more than this many bytes of other frames. */
const REQUEST_BYTES = 32_768;
/** What a connection begins with. */
const OPENING_BYTES = 1024;
/** A frame of a body costs as much as others of this size, however little is in it. */
const BODY_FRAME_BYTES_MIN = 64;
/** A body that is cut costs as much as so many bytes of other frames: the rest of a window of the smallest frames. */
const CUT_BODY_BYTES = 524_288;
const PENALTY_MS: Millis = 1000;
const NO_COUNT: FrameCount = {
  requested: () => undefined,
  received: () => undefined,
  cutBody: () => undefined,
  end: () => undefined,
};

interface Counted {
  readonly client: string;
  readonly connection: FramedConnection;
  /** Bytes that are explained by requests. */
  explained: number;
  /** Of the others, those that the client's sum has already. */
  charged: number;
}

export class FrameShare {
  readonly #options: FrameShareOptions;
  readonly #open = new Set<Counted>();
  /** Of each client, what is left to be forgiven. */
  readonly #excess = new Map<string, number>();
  readonly #penalized = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** Clients that went beyond their share. */
  floods = 0;

  constructor(options: FrameShareOptions) {
    this.#options = options;
  }

  /** @returns whether no connection of this client is accepted at the moment */
  isPenalized(client: string): boolean {
    return this.#penalized.has(client);
  }

  /** @param client its address; null: nobody in particular, as with a trusted proxy, whose connections are everybody's */
  begin(client: string | null, connection: FramedConnection): FrameCount {
    if (client === null) return NO_COUNT;
    const counted: Counted = { client, connection, explained: OPENING_BYTES, charged: 0 };
    this.#open.add(counted);
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS).unref();
    return {
      requested: () => {
        counted.explained += REQUEST_BYTES;
      },
      received: (bytes) => {
        counted.explained += bytes - Math.max(0, BODY_FRAME_BYTES_MIN - bytes);
      },
      cutBody: () => {
        const excess = (this.#excess.get(client) ?? 0) + CUT_BODY_BYTES;
        this.#excess.set(client, excess);
        // Others of this client may come in the same turn of the event loop, before the next look.
        if (excess > BURST_BYTES) this.#cut(client);
      },
      end: () => {
        // Who closes before it is looked at is charged all the same.
        if (this.#open.delete(counted)) this.#charge(counted);
      },
    };
  }

  samples(): Sample[] {
    return [
      counter(
        'floodgate_http2_floods_total',
        'Clients that were cut because of what they sent beside requests.',
        this.floods,
      ),
    ];
  }

  #check(): void {
    for (const counted of this.#open) this.#charge(counted);
    for (const [client, excess] of this.#excess) {
      if (excess <= BYTES_PER_CHECK) this.#excess.delete(client);
      else if (excess > BURST_BYTES) this.#cut(client);
      else this.#excess.set(client, excess - BYTES_PER_CHECK);
    }
    if (this.#open.size > 0 || this.#excess.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #charge(counted: Counted): void {
    const bytes = counted.connection.read() - counted.explained - counted.charged;
    if (bytes <= 0) return;
    counted.charged += bytes;
    this.#excess.set(counted.client, (this.#excess.get(counted.client) ?? 0) + bytes);
  }

  #cut(client: string): void {
    this.floods++;
    this.#options.onFlood();
    this.#penalized.add(client);
    setTimeout(() => this.#penalized.delete(client), this.#options.penaltyMs ?? PENALTY_MS).unref();
    for (const counted of this.#open) {
      if (counted.client !== client) continue;
      this.#open.delete(counted);
      counted.connection.cut();
    }
    this.#excess.delete(client);
  }
}
