/**
 * Bounds the frames that one client sends in addition to its requests: WINDOW_UPDATE, PING, PRIORITY, SETTINGS and
 * unknown ones. Each costs nghttp2 a fraction of a microsecond, and 100 MB of them in a second occupy the event loop.
 * node:http2 does not report them, so they are counted by bytes: those read, without those of header sections and
 * bodies.
 */
import { counter, type Sample } from '#gateway/part/sample.ts';
import type { Millis } from '#shared/clock.ts';

interface FrameShareOptions {
  /** Called when a client has exceeded its share and its connections are cut. */
  readonly onFlood: () => void;
  readonly penaltyMs?: Millis;
}

interface FramedConnection {
  /** Number of received bytes, after decryption. */
  read(): number;
  cut(): void;
}

/** Counts the frames of one connection. */
export interface FrameCount {
  /** Called when a request begins. */
  requested(): void;
  /** Called for each DATA frame, with its length. */
  received(bytes: number): void;
  /** Called when a body is cut because of its small pieces. Frames on their way still have to be handled. */
  cutBody(): void;
  /** Called when the connection is closed. */
  end(): void;
}

const CHECK_MS: Millis = 100;
/** 2 MiB hold 160,000 of the smallest frames, which take a few hundredths of a second to handle. */
const BYTES_PER_CHECK = (2 * 1024 * 1024 * CHECK_MS) / 1000;
const BURST_BYTES = 2 * 1024 * 1024;
/** Bytes allowed for each request. A request costs more than this number of bytes in other frames. */
const REQUEST_BYTES = 32_768;
/** Bytes allowed for the preface and the settings of a connection. */
const OPENING_BYTES = 1024;
/** A smaller DATA frame counts as one of this size. */
const BODY_FRAME_BYTES_MIN = 64;
/** Bytes allowed for a body that is cut: the rest of its window in the smallest frames. */
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
  /** Number of bytes that are allowed because of requests and bodies. */
  explained: number;
  /** Number of other bytes, which are already in `#excess` of the client. */
  charged: number;
}

export class FrameShare {
  readonly #options: FrameShareOptions;
  readonly #open = new Set<Counted>();
  /** Number of bytes beyond the allowed ones, by client. It shrinks with each check. */
  readonly #excess = new Map<string, number>();
  readonly #penalized = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** Number of times that a client exceeded its share. */
  floods = 0;

  constructor(options: FrameShareOptions) {
    this.#options = options;
  }

  /** Whether new connections of this client are currently refused. */
  isPenalized(client: string): boolean {
    return this.#penalized.has(client);
  }

  /** @param client null for a trusted proxy, whose frames are not counted */
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
        // More bytes of this client may arrive in the same tick, before the next check.
        if (excess > BURST_BYTES) this.#cut(client);
      },
      end: () => {
        // Also charge a client that closes before the next check.
        if (this.#open.delete(counted)) this.#charge(counted);
      },
    };
  }

  samples(): Sample[] {
    return [
      counter(
        'floodgate_http2_floods_total',
        'Clients that were cut because of frames other than requests.',
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
