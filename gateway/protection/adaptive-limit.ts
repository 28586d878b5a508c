/**
 * Computes how many requests may be in progress at the application, from the time that it takes to begin its replies.
 * While that time is at most about twice the time without load, the limit rises to its maximum. When it is longer, the
 * limit falls in the same ratio. Pure: the caller passes the time.
 *
 * Each client has one vote in a window, however many requests it sends, and the median of all votes decides. Of two
 * votes, the one against a change decides, and a single vote changes nothing. So one client cannot lower the limit.
 */
import type { Millis } from '#shared/clock.ts';

/** The minimum of the limit. With at most this many requests in progress, the application counts as unloaded. */
export const IN_PROGRESS_MIN = 10;
const WINDOW_MS: Millis = 500;
/** Replies that take longer than this multiple of the time without load count as congestion. */
const TOLERATED_TIMES = 2;
/** Added to the tolerance, because times of about a millisecond vary too much to compare. */
const TOLERATED_MS: Millis = 10;
/** Number of congested windows in a row that lower the limit. A single one may be a pause for garbage collection. */
const CONGESTED_WINDOWS = 2;
/** Smallest factor by which one window lowers the limit. */
const FALL_MAX = 0.5;
/** Weight of one window in the average of the time without load. */
const LEARNING_RATE = 1 / 8;
/** The gateway may start during an overload. Until it has measured less load, it ignores longer times than this. */
const FIRST_UNLOADED_MS_MAX: Millis = 500;
/**
 * After the number of requests in progress was halved, congested replies take about half the time. If replies still
 * take at least this part of the earlier time, the load is not the reason for their time.
 */
const UNCHANGED_PART = 0.85;
/**
 * After the limit has fallen, replies to earlier requests still arrive. They are not measured for at most this time.
 */
const SETTLING_MS_MAX: Millis = 2000;
/** If no reply has begun for this time, the load is unknown. */
const IDLE_MS: Millis = 10_000;
const VOICES_MAX = 1000;

interface Voice {
  sumMs: Millis;
  count: number;
}

interface Fall {
  readonly peak: number;
  /** Reply time of requests that were sent before the number in progress was halved. */
  ms: Millis;
}

export class AdaptiveLimit {
  readonly max: number;
  readonly min: number;
  limit: number;
  /** The time that the application takes without load; null if it is unknown. */
  unloadedMs: Millis | null = null;
  readonly #voices = new Map<string, Voice>();
  #windowFrom: Millis = 0;
  #lastAt: Millis = 0;
  #settlesUntil: Millis = 0;
  #peak = 0;
  #congested = 0;
  /** State when the limit began to fall; null if it is not falling. */
  #fallFrom: Fall | null = null;
  /** Time at which the number of requests in progress fell to half of that in `#fallFrom`. */
  #halvedAt: Millis = Number.POSITIVE_INFINITY;

  constructor(max: number) {
    this.max = max;
    this.min = Math.min(IN_PROGRESS_MIN, max);
    this.limit = max;
  }

  /** Returns the longest reply time that does not count as congestion. */
  get toleratedMs(): Millis {
    return TOLERATED_TIMES * (this.unloadedMs ?? FIRST_UNLOADED_MS_MAX) + TOLERATED_MS;
  }

  /**
   * @param client an address, or the network of an IPv6 address
   * @param ms time from the end of the request to the beginning of its reply
   * @param isAnswered false if there was no reply, or an error; then only a long time is measured
   * @param inProgress requests at the application, including this one
   */
  measure(client: string, ms: Millis, isAnswered: boolean, inProgress: number, now: Millis): void {
    if (now < this.#settlesUntil || (!isAnswered && ms <= this.toleratedMs)) return;
    if (now - this.#lastAt > IDLE_MS) {
      this.limit = this.max;
      this.#congested = 0;
      this.#fallFrom = null;
      this.#clear();
    }
    this.#lastAt = now;
    if (this.#voices.size === 0) this.#windowFrom = now;
    this.#peak = Math.max(this.#peak, inProgress);
    if (inProgress > (this.#fallFrom?.peak ?? 0) / 2) this.#halvedAt = Number.POSITIVE_INFINITY;
    else this.#halvedAt = Math.min(this.#halvedAt, now);
    const voice = this.#voices.get(client);
    if (voice !== undefined) {
      voice.sumMs += ms;
      voice.count++;
    } else if (this.#voices.size < VOICES_MAX) this.#voices.set(client, { sumMs: ms, count: 1 });
    if (now - this.#windowFrom >= WINDOW_MS) this.#decide(now);
  }

  #decide(now: Millis): void {
    const voices = [...this.#voices.values()].map(({ sumMs, count }) => sumMs / count).sort((a, b) => a - b);
    const lowMs = voices[Math.floor((voices.length - 1) / 2)] ?? 0;
    const highMs = voices[Math.floor(voices.length / 2)] ?? 0;
    const isUnloaded = this.#peak <= this.min;
    const peak = this.#peak;
    this.#clear();
    const isAlone = voices.length === 1;
    if (!isAlone) this.#learn(highMs, isUnloaded);
    if (this.#fallFrom !== null) this.#judgeFall(this.#fallFrom, lowMs);
    if (lowMs <= this.toleratedMs) {
      this.#congested = 0;
      this.#fallFrom = null;
      this.limit = Math.min(this.max, Math.floor(this.limit + Math.sqrt(this.limit)));
    } else if (!isAlone && !isUnloaded && ++this.#congested >= CONGESTED_WINDOWS) {
      const part = Math.max(FALL_MAX, this.toleratedMs / lowMs);
      this.#fallFrom ??= { peak, ms: lowMs };
      this.limit = Math.max(this.min, Math.floor(Math.min(this.limit, peak) * part));
      this.#settlesUntil = now + Math.min(lowMs, SETTLING_MS_MAX);
    }
  }

  /** If replies are no faster with half as many requests in progress, the load is not the reason for their time. */
  #judgeFall(from: Fall, ms: Millis): void {
    const isHalved = this.#windowFrom - ms >= this.#halvedAt;
    if (!isHalved) from.ms = Math.max(from.ms, ms);
    else if (ms > from.ms * UNCHANGED_PART) this.unloadedMs = Math.max(this.unloadedMs ?? 0, ms);
  }

  /**
   * Learns the time without load. With few requests in progress, a measured time is the time without load. Under load,
   * it is an upper bound of that.
   */
  #learn(ms: Millis, isUnloaded: boolean): void {
    const known = this.unloadedMs;
    if (known === null) this.unloadedMs = isUnloaded ? ms : Math.min(ms, FIRST_UNLOADED_MS_MAX);
    else if (isUnloaded || ms < known) this.unloadedMs = known + (ms - known) * LEARNING_RATE;
  }

  #clear(): void {
    this.#voices.clear();
    this.#peak = 0;
  }
}
