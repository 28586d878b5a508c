/** The bans that this process knows. A ban stays in force until it ends, even while the store is unavailable. */
import { parseNetwork } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import { NetworkMap } from '#shared/network-map.ts';

/** Maximum length of a ban by a policy. For the same time after its end, it still makes the next ban longer. */
export const POLICY_BAN_MS_MAX: Millis = 7 * 86_400_000;
export const BAN_DAYS_MAX = 30;
export const BAN_MS_MAX: Millis = BAN_DAYS_MAX * 86_400_000;

export interface Ban {
  /** Milliseconds since the epoch. */
  readonly endsAt: Millis;
  /** Reason of the ban; empty if the operator gave none. */
  readonly reason: string;
  /** Name of the row in the policy file that made the ban. null if an operator made it. */
  readonly policy: string | null;
}

interface ListedBan extends Ban {
  readonly digest: string;
}

/** A list of bans, newest first. */
export interface BanList {
  /** Number of all bans, including those that are not listed. */
  readonly total: number;
  readonly bans: readonly ListedBan[];
}

/** Writes the text that the store keeps for a ban: the policy or an empty line, then the reason. */
export function noteOf({ reason, policy }: Pick<Ban, 'reason' | 'policy'>): string {
  return `${policy ?? ''}\n${reason}`;
}

export function readNote(note: string): Pick<Ban, 'reason' | 'policy'> {
  const at = note.indexOf('\n');
  return { reason: note.slice(at + 1), policy: at > 0 ? note.slice(0, at) : null };
}

/** A ban of a network has the network as its name, where others have a digest, which has no slash. */
function isNetwork(name: string): boolean {
  return name.includes('/');
}

export class Bans {
  /** Bans by digest of the client, or by network. Ends are on the clock of this process. */
  readonly #bans = new Map<string, Ban>();
  /** The names of bans that are networks. */
  readonly #networks = new NetworkMap<string>();

  get size(): number {
    return this.#bans.size;
  }

  of(digest: string, now: Millis): Ban | null {
    const ban = this.#bans.get(digest);
    if (ban === undefined) return null;
    if (ban.endsAt > now) return ban;
    this.delete(digest);
    return null;
  }

  /** Returns the ban of a network with this address. @param address 4 or 16 bytes; null if it is unknown */
  onAddress(address: readonly number[] | null, now: Millis): Ban | null {
    while (this.#networks.size > 0 && address !== null) {
      const network = this.#networks.find(address);
      if (network === undefined) return null;
      const ban = this.of(network, now);
      if (ban !== null) return ban;
      // This one has ended and is dropped. A larger network may be banned for longer.
    }
    return null;
  }

  set(digest: string, ban: Ban): void {
    this.#bans.set(digest, ban);
    if (isNetwork(digest)) this.#networks.add(parseNetwork(digest), digest);
  }

  delete(digest: string): void {
    this.#bans.delete(digest);
    if (isNetwork(digest)) this.#networks.delete(parseNetwork(digest));
  }
}
