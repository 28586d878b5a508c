/**
 * Reads the counters once a second, and sends the current state to all open pages as one text. While no page is open, it
 * reads only at the start of each span of the history. A page that does not read is disconnected, so no data accumulates.
 */
import type { ServerResponse } from 'node:http';
import { isoTime, type Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { AdminContext } from './context.ts';
import { addressesOf } from './decisions-routes.ts';
import { SPAN_MS, type TrafficHistory } from './history.ts';
import { ASK_MS, type TopSource, takeSnapshot } from './top.ts';

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
  /** The newest refusal that was sent. */
  #newestDenial: string | null = null;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Sends the traffic of the last hour, then changes, until the response is closed. */
  async add(response: ServerResponse, isWelcome: () => boolean): Promise<void> {
    const listener: Listener = { response, isWelcome, firstBytes: null };
    this.#listeners.add(listener);
    response.on('close', () => this.#listeners.delete(listener));
    this.schedule();
    // The first text includes the counts up to now.
    await this.#look();
    if (response.destroyed) return;
    const first = event('traffic', this.#options.history.traffic());
    listener.firstBytes = Buffer.byteLength(first);
    response.write(first);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { response } of this.#listeners) response.destroy();
  }

  /** Sets the timer for the next second or span. The spans are exact if they begin with a reading. */
  schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const everyMs = this.#listeners.size > 0 ? EVERY_MS : SPAN_MS;
    const waitMs = Math.ceil(everyMs - (this.#options.clock() % everyMs));
    this.#timer = setTimeout(() => void this.#look().finally(() => this.schedule()), waitMs).unref();
  }

  /**
   * Adds the newest counts to the history, and sends them to all listeners. Runs one at a time; runs that become due
   * meanwhile are skipped. Never rejects: after an error, the next second tries again.
   */
  #look(): Promise<void> {
    this.#looking ??= this.#tell()
      .catch(() => undefined)
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  async #tell(): Promise<void> {
    const { clock, history, addresses } = this.#options;
    const askedAt = clock();
    const { families, snapshot } = await takeSnapshot(this.#options, askedAt, history.since);
    const grown = history.add(families, askedAt);
    if (this.#listeners.size === 0) return;
    const { denials, policyVersion } = await this.#news();
    this.#send(
      event('second', {
        ...snapshot,
        at: isoTime(history.readAt),
        addresses: addressesOf([...snapshot.limited, ...denials], addresses),
        policyVersion,
        grown,
        rates: history.rates(),
        denials,
      }),
    );
  }

  /** Reads the refusals since the last call; none if the store does not answer. */
  async #news() {
    const { listDecisions, policyVersion } = this.#options;
    const [newest, version] = await Promise.all([
      within(ASK_MS, listDecisions(null, DENIALS_MAX)).catch(() => []),
      within(ASK_MS, policyVersion()).catch(() => null),
    ]);
    const known = newest.findIndex(({ id }) => id === this.#newestDenial);
    this.#newestDenial = newest[0]?.id ?? this.#newestDenial;
    return { denials: known < 0 ? newest : newest.slice(0, known), policyVersion: version };
  }

  #send(text: string): void {
    for (const listener of this.#listeners) {
      const { response, isWelcome, firstBytes } = listener;
      if (firstBytes === null) continue;
      if (!isWelcome()) {
        response.end();
        this.#listeners.delete(listener);
      } else if (response.writableLength > UNREAD_BYTES_MAX + firstBytes) response.destroy();
      else response.write(text);
    }
  }
}

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
