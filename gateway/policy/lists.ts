/** Whom no policy counts, and whom the gateway answers itself: by the client's address, or by digest. */
import type { NetworkTable } from './network-table.ts';

export interface ListEntry {
  readonly list: 'allow' | 'deny';
  /** As written, for reports. */
  readonly text: string;
  /** Line in the file, from 1. */
  readonly line: number;
  /** What the denied get, except on routes that browsers call from elsewhere. */
  readonly status: 403 | 429;
  /** Told to them; null: nothing. */
  readonly reason: string | null;
}

export interface Lists {
  readonly digests: ReadonlyMap<string, ListEntry>;
  readonly networks: NetworkTable<ListEntry>;
  /** All entries as written, each with its list. */
  readonly texts: readonly string[];
}

/**
 * The entry that holds for a client: a digest before a network, the longest prefix, and of two digests the denied one.
 *
 * @param digests all that the client is known by
 * @param address bytes of its address; null: it cannot be read
 * @param doubtful what it may be known by as well: enough to deny, not to allow
 */
export function entryFor(
  lists: Lists,
  digests: readonly string[],
  address: readonly number[] | null,
  doubtful: readonly string[] = [],
): ListEntry | null {
  for (const digest of doubtful) {
    const entry = lists.digests.get(digest);
    if (entry?.list === 'deny') return entry;
  }
  let found: ListEntry | null = null;
  for (const digest of digests) {
    const entry = lists.digests.get(digest);
    if (entry?.list === 'deny') return entry;
    found ??= entry ?? null;
  }
  if (found !== null || address === null) return found;
  return lists.networks.find(address) ?? null;
}
