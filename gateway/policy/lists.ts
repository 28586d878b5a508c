/**
 * The lists `allow` and `deny`: clients that no policy counts, and clients that the gateway refuses. `deny` also denies
 * routes to everybody.
 */
import type { NetworkTable } from './network-table.ts';
import type { Route } from './route.ts';

export interface ListEntry {
  readonly list: 'allow' | 'deny';
  readonly names: 'client' | 'route';
  /** The entry as it is written in the file, for reports. */
  readonly text: string;
  /** Line in the file, from 1. */
  readonly line: number;
  /** Status of a refusal, except on routes that browsers call from other origins. */
  readonly status: 403 | 429;
  /** Reason in the reply; null for none. */
  readonly reason: string | null;
}

export interface Lists {
  readonly digests: ReadonlyMap<string, ListEntry>;
  readonly networks: NetworkTable<ListEntry>;
  /** Entries by the lower-case name of a program. Only the list deny has them. */
  readonly programs: ReadonlyMap<string, ListEntry>;
  /** Routes denied to everybody, in the order of the file. */
  readonly routes: readonly (readonly [Route, ListEntry])[];
  /** Entries of both lists. */
  readonly entries: readonly ListEntry[];
}

/** The properties of a request by which its client can be listed. */
interface ListedClient {
  readonly digests: readonly string[];
  /** Digests that may belong to the client. They are enough to deny it, but not to allow it. */
  readonly doubtful: readonly string[];
  /** Bytes of the client address; null if unknown. */
  readonly address: readonly number[] | null;
  /** Words of its User-Agent; empty if no list names programs. */
  readonly words: readonly string[];
}

/**
 * Finds the entry for a client: a digest wins over a network, a longer prefix over a shorter one, a network over a
 * program, and deny over allow.
 */
export function entryFor(
  lists: Lists,
  { digests, doubtful, address, words }: ListedClient,
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
  found ??= (address === null ? undefined : lists.networks.find(address)) ?? null;
  if (found !== null) return found;
  for (const word of words) {
    const entry = lists.programs.get(word);
    if (entry !== undefined) return entry;
  }
  return null;
}
