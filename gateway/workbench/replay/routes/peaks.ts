/**
 * Counts the requests of each client on each route by window, and the maximum of any window, for a bounded number of
 * clients. If there are more, only every second client is followed, then every fourth, and so on. Digests are as good
 * as random, so the rest is a fair sample.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Millis } from '#shared/clock.ts';

/** Maximum number of clients, each counted once for each of its routes; about 150 bytes each. */
const CLIENTS_MAX = 524_288;

interface PeaksOptions {
  readonly windowMs: Millis;
  /** Called at the end of each window of a client. */
  readonly onWindow: (route: number, requests: number) => void;
  readonly clientsMax?: number;
}

/** A client on a route. */
interface Peak {
  readonly route: number;
  /** The first word of its digest, which decides whether it is in the sample. */
  readonly word: number;
  window: number;
  /** Number of requests in the window. */
  count: number;
  /** The maximum of the earlier windows. */
  most: number;
}

export class Peaks {
  readonly #options: PeaksOptions;
  readonly #clients = new Map<string, Peak>();
  /** Inverse of the sampling rate: one of this number of clients is followed. A power of two. */
  oneIn = 1;

  constructor(options: PeaksOptions) {
    this.#options = options;
  }

  /** Counts a request. Times must not decrease. */
  add(route: number, { digest, words: [word] }: Identity, at: Millis): void {
    if (!this.#isFollowed(word)) return;
    const { windowMs, clientsMax = CLIENTS_MAX } = this.#options;
    const window = Math.floor(at / windowMs);
    const key = `${route} ${digest}`;
    const peak = this.#clients.get(key);
    if (peak === undefined) {
      this.#clients.set(key, { route, word, window, count: 1, most: 0 });
      if (this.#clients.size > clientsMax) this.#thin();
    } else if (peak.window === window) peak.count++;
    else {
      this.#end(peak);
      peak.window = window;
      peak.count = 1;
    }
  }

  /** Ends all windows, and reports the maximum of each client. */
  end(onClient: (route: number, most: number) => void): void {
    for (const peak of this.#clients.values()) {
      this.#end(peak);
      onClient(peak.route, peak.most);
    }
  }

  #isFollowed(word: number): boolean {
    return (word & (this.oneIn - 1)) === 0;
  }

  #end(peak: Peak): void {
    this.#options.onWindow(peak.route, peak.count);
    peak.most = Math.max(peak.most, peak.count);
  }

  /** Drops every second client. */
  #thin(): void {
    this.oneIn *= 2;
    for (const [key, { word }] of this.#clients) if (!this.#isFollowed(word)) this.#clients.delete(key);
  }
}
