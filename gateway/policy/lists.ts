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

/** What a client is known by. */
interface ListedClient {
  readonly digests: readonly string[];
  /** Digests that may be the client's: enough to deny it, not to allow it. */
  readonly doubtful: readonly string[];
  /** Bytes of its address; null: unknown. */
  readonly address: readonly number[] | null;
}

/** Finds the entry for a client: a digest wins over a network, a longer prefix over a shorter one, deny over allow. */
export function entryFor(lists: Lists, { digests, doubtful, address }: ListedClient): ListEntry | null {
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
