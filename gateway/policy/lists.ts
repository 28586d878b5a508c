/**
 * The lists `allow` and `deny`: clients that no policy counts, and clients that the gateway refuses. `deny` also denies
 * routes to everybody.
 */
import type { HostNames } from './host-names.ts';
import type { NetworkTable } from './network-table.ts';
import type { Path } from './problems.ts';
import type { HostRoute } from './route.ts';

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

export interface NamedNetworks {
  readonly file: { find(address: readonly number[]): string | undefined };
  readonly entries: ReadonlyMap<string, ListEntry>;
}

/** The clients that the lists name for some hosts, or for all. */
export interface ListedClients {
  /** null for all hosts. */
  readonly hosts: HostNames | null;
  readonly digests: ReadonlyMap<string, ListEntry>;
  readonly networks: NetworkTable<ListEntry>;
  /** Entries by the names of networks, for each file of such names. */
  readonly named: readonly NamedNetworks[];
  /** Entries by the lower-case name of a program. Only the list deny has them. */
  readonly programs: ReadonlyMap<string, ListEntry>;
}

/** A name of a network that its file does not have. */
export interface UnknownName {
  readonly at: Path;
  readonly name: string;
  readonly file: string;
}

/** The lines of a file that a lenient list skips. */
export interface SkippedLines {
  readonly at: Path;
  readonly file: string;
  count: number;
  /** The first of them: its number, and why it cannot be used. */
  first: string;
}

/** Returns a sentence for each file with such lines. */
export function skippedTexts(lists: Lists | null): readonly { readonly at: Path; readonly text: string }[] {
  const found = lists?.skippedLines.filter(({ count }) => count > 0) ?? [];
  return found.map(({ at, file, count, first }) => {
    const what = count === 1 ? `line of ${file} is` : `lines of ${file} are`;
    return { at, text: `${count} ${what} skipped, such as ${first}` };
  });
}

export interface Lists {
  /** Those for some hosts come before those for all. */
  readonly clients: readonly ListedClients[];
  readonly hasDigests: boolean;
  /** Number of words in the longest name of a program; 0 without programs. */
  readonly programWordsMax: number;
  /** Names of entries that their file does not have, for warnings. They may come back with its next version. */
  readonly unknownNames: readonly UnknownName[];
  /** Lines of lenient files that cannot be used, for warnings. */
  readonly skippedLines: readonly SkippedLines[];
  /** Routes denied to everybody, in the order of the file. */
  readonly routes: readonly (readonly [HostRoute, ListEntry])[];
  /** Entries of both lists. */
  readonly entries: readonly ListEntry[];
}

/** The properties of a request by which its client can be listed. */
interface Client {
  /** Canonical host of the request; empty if nothing depends on it. */
  readonly host: string;
  readonly digests: readonly string[];
  /** Digests that may belong to the client. They are enough to deny it, but not to allow it. */
  readonly doubtful: readonly string[];
  /** Bytes of the client address; null if unknown. */
  readonly address: readonly number[] | null;
  /** Words of its User-Agent, and the names that they may form; empty if no list names programs. */
  readonly words: readonly string[];
}

/**
 * Finds the entry for a client: one for some hosts wins over one for all. Then a digest wins over a network, a longer
 * prefix over a shorter one, a network over the name of one, that over a program, and deny over allow.
 */
export function entryFor(lists: Lists, client: Client): ListEntry | null {
  let found: ListEntry | null = null;
  for (const listed of lists.clients) {
    if (listed.hosts === null) return found ?? entryAmong(listed, client);
    const entry = listed.hosts.has(client.host) ? entryAmong(listed, client) : null;
    if (entry?.list === 'deny') return entry;
    found ??= entry;
  }
  return found;
}

function entryAmong(listed: ListedClients, { digests, doubtful, address, words }: Client): ListEntry | null {
  for (const digest of doubtful) {
    const entry = listed.digests.get(digest);
    if (entry?.list === 'deny') return entry;
  }
  let found: ListEntry | null = null;
  for (const digest of digests) {
    const entry = listed.digests.get(digest);
    if (entry?.list === 'deny') return entry;
    found ??= entry ?? null;
  }
  if (address !== null) found ??= listed.networks.find(address) ?? namedEntry(listed, address);
  if (found !== null) return found;
  for (const word of words) {
    const entry = listed.programs.get(word);
    if (entry !== undefined) return entry;
  }
  return null;
}

function namedEntry({ named }: ListedClients, address: readonly number[]): ListEntry | null {
  let found: ListEntry | null = null;
  for (const { file, entries } of named) {
    const name = file.find(address);
    const entry = name === undefined ? undefined : entries.get(name);
    if (entry?.list === 'deny') return entry;
    found ??= entry ?? null;
  }
  return found;
}
