/**
 * Reads the counters once a second, and sends the current state to all open pages as one text. While no page is open, it
 * reads only at the start of each span of the history. A page that does not read is disconnected, so no data accumulates.
 */
import type { ServerResponse } from 'node:http';
import type { Ranked } from '#gateway/observe/metrics/ranking.ts';
import type { DecisionRecord } from '#gateway/refusals/decision-record.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { addressesOf } from './decisions-routes.ts';
import { groupTotals } from './groups.ts';
import { SPAN_MS, type TrafficHistory } from './history.ts';
import { applicationAway, deniedHere, mostLimited, storeState, type TopSource } from './top.ts';
import { totalsOf } from './totals.ts';

export const LISTENERS_MAX = 16;
const EVERY_MS: Millis = 1000;
/** A listener is cut if it has not read this many bytes in addition to its first text. */
const UNREAD_BYTES_MAX = 1_048_576;
/** Maximum number of new refusals that are sent in a second; the list has the others. */
const DENIALS_MAX = 20;

export interface LiveFeedOptions
  extends TopSource,
    Pick<AdminContext, 'clock' | 'listDecisions' | 'addresses'> {
  readonly history: TrafficHistory;
  /** Changes with the policy file, and with shadow modes of operators. */
  readonly policyVersion: () => Promise<string>;
}

interface Listener {
  readonly response: ServerResponse;
  /** Length of the first text of this listener; null before it is sent. */
  firstBytes: number | null;
  /** Whether the listener can still receive data. */
  readonly isWelcome: () => boolean;
}

export class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #listeners = new Set<Listener>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #looking: Promise<void> | null = null;
  /** The pending query of the store. Counters are sent even if the store does not answer. */
  #asking: Promise<void> | null = null;
  #policyVersion: string | null = null;
  /** Clients that this gateway, and each other one, denied most. null if the store does not answer. */
  #denied: readonly Ranked[] = [];
  #deniedElsewhere: readonly (readonly Ranked[])[] | null = [];
  #denials: readonly DecisionRecord[] = [];
  #newestDenial: string | null = null;
  /** Number of listeners that were cut because they did not read. */
  cut = 0;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#listeners.size >= LISTENERS_MAX;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Sends the traffic of the last hour, then changes, until the response is closed. */
  async add(response: ServerResponse, isWelcome: () => boolean): Promise<void> {
    const listener: Listener = { response, isWelcome, firstBytes: null };
    this.#listeners.add(listener);
    response.on('close', () => this.#remove(listener));
    this.#schedule();
    // The first text includes the counts up to now.
    await this.look();
    if (response.destroyed) return;
    const first = event('traffic', this.#options.history.traffic());
    listener.firstBytes = Buffer.byteLength(first);
    response.write(first);
  }

  /** Begins to read the counters. */
  start(): void {
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { response } of this.#listeners) response.destroy();
  }

  #remove(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#newestDenial = null;
    this.#denials = [];
  }

  /** Sets the timer for the next second or span. The spans are exact if they begin with a reading. */
  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const everyMs = this.#listeners.size > 0 ? EVERY_MS : SPAN_MS;
    const waitMs = Math.ceil(everyMs - (this.#options.clock() % everyMs));
    this.#timer = setTimeout(() => void this.look().finally(() => this.#schedule()), waitMs).unref();
  }

  /**
   * Adds the newest counts to the history, and sends them to all listeners. Runs one at a time; runs that become due
   * meanwhile are skipped. Never rejects.
   */
  look(): Promise<void> {
    this.#looking ??= this.#tell().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #tell(): Promise<void> {
    const { clock, history, storeKind, addresses } = this.#options;
    const isWatched = this.#listeners.size > 0;
    try {
      const askedAt = clock();
      const [processes, families] = await Promise.all([this.#options.processes(), this.#options.families()]);
      const grown = history.add(families, askedAt);
      const store = storeState(storeKind, processes);
      this.#denied = deniedHere(processes);
      this.#asking ??= this.#ask(isWatched).finally(() => {
        this.#asking = null;
      });
      if (!isWatched) return;
      const most = mostLimited(processes, this.#deniedElsewhere, askedAt, history.since);
      this.#send(
        event('second', {
          at: isoTime(history.readAt),
          processes: processes.length,
          store,
          applicationAway: applicationAway(processes, askedAt),
          ...most,
          addresses: addressesOf([...most.limited, ...this.#denials], addresses),
          policyVersion: this.#policyVersion,
          grown,
          rates: history.rates(),
          totals: { ...totalsOf(families), ...groupTotals(families) },
          denials: this.#denials,
        }),
      );
      this.#denials = [];
    } catch {
      // After an error, the next second tries again.
    }
  }

  #send(text: string): void {
    for (const listener of this.#listeners) {
      const { response, isWelcome, firstBytes } = listener;
      if (firstBytes === null) continue;
      if (!isWelcome()) {
        response.end();
        this.#remove(listener);
      } else if (response.writableLength > UNREAD_BYTES_MAX + firstBytes) {
        this.cut++;
        response.destroy();
      } else response.write(text);
    }
  }

  /**
   * Exchanges the clients denied most with the other gateways. For open pages, it also reads the refusals since the last
   * call. Never rejects: during an outage of the store the lists are empty.
   */
  async #ask(isWatched: boolean): Promise<void> {
    const { exchangeDenied, listDecisions, policyVersion } = this.#options;
    this.#deniedElsewhere = await exchangeDenied(this.#denied).catch(() => null);
    if (!isWatched) return;
    const [newest, version] = await Promise.all([
      listDecisions(null, DENIALS_MAX).catch(() => []),
      policyVersion().catch(() => null),
    ]);
    const known = newest.findIndex(({ id }) => id === this.#newestDenial);
    const fresh = known < 0 ? newest : newest.slice(0, known);
    this.#newestDenial = newest[0]?.id ?? this.#newestDenial;
    this.#denials = [...fresh, ...this.#denials].slice(0, DENIALS_MAX);
    this.#policyVersion = version;
  }
}

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
