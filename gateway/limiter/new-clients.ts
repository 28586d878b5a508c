/**
 * Limits how many clients are stored for the first time on a day: a process stores its share of `newPerDay`, and a quarter
 * of that for one IPv6 network. It only bounds the memory of the store, so a process that starts again may begin anew.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import { NETWORK_SHARE, sharedBy } from '#gateway/policy/groups.ts';
import { DigestTable } from './digest-table.ts';

export interface VisitsLog {
  warn(fields: object, message: string): void;
}

/** Number of networks whose new clients are counted. Beyond it those are forgotten that had none for longest. */
const NETWORKS_MAX = 16_384;
const FULL =
  'as many new clients as regulars.newPerDay allows this process were stored today; further ones stay newcomers until tomorrow';

export class NewClients {
  readonly #log: VisitsLog | null;
  #day = 0;
  #admitted = 0;
  /** Most processes store no clients, or none with IPv6, and need none. */
  #ofNetworks: DigestTable | null = null;
  /** Whether the log has heard today that no further client is stored. */
  #isTold = false;

  /** @param log null if nobody wants to know */
  constructor(log: VisitsLog | null) {
    this.#log = log;
  }

  /**
   * Counts a client that is stored for the first time.
   *
   * @param network its IPv6 network; null for IPv4
   * @param most the share of this process
   * @returns whether it may be stored
   */
  admit(network: Identity | null, most: number, day: number): boolean {
    if (day !== this.#day) {
      this.#day = day;
      this.#admitted = 0;
      this.#ofNetworks?.clear();
      this.#isTold = false;
    }
    if (this.#admitted >= most) {
      if (!this.#isTold) this.#log?.warn({ share: most }, FULL);
      this.#isTold = true;
      return false;
    }
    if (network !== null) {
      this.#ofNetworks ??= new DigestTable(NETWORKS_MAX);
      const those = this.#ofNetworks.get(network.words)?.count ?? 0;
      if (those >= sharedBy(NETWORK_SHARE, most)) return false;
      this.#ofNetworks.put(network.words, those + 1, 0, 0);
    }
    this.#admitted++;
    return true;
  }
}
