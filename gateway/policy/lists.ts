/**
 * The lists `allow` and `deny`: clients that no policy counts, and clients that the gateway refuses. `deny` also denies
 * routes to everybody.
 */
import type { ClientTable } from './clients.ts';
import type { HostNames } from './host-names.ts';
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

/** The clients that the lists name for some hosts, or for all. */
export interface ListedClients {
  /** null for all hosts. */
  readonly hosts: HostNames | null;
  /** Only the list deny names programs. */
  readonly clients: ClientTable<ListEntry>;
  /** Files that give names to networks. */
  readonly files: ReadonlyMap<string, { find(address: readonly number[]): string | undefined }>;
}

export interface Lists {
  /** Those for some hosts come before those for all. */
  readonly clients: readonly ListedClients[];
  readonly hasDigests: boolean;
  /** Number of words in the longest name of a program; 0 without programs. */
  readonly programWordsMax: number;
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

function entryAmong(listed: ListedClients, client: Client): ListEntry | null {
  const { clients } = listed;
  const { digests, doubtful, address, words } = client;
  for (const digest of [...doubtful, ...digests]) {
    const entry = clients.digests.get(digest);
    if (entry?.list === 'deny') return entry;
  }
  return clients.find(digests, address) ?? namedEntry(listed, address) ?? clients.ofProgram(words) ?? null;
}

/** How a table of clients calls the networks of this name. */
export const namedIn = (file: string, name: string): string => `${file} ${name}`;

function namedEntry(
  { files, clients }: ListedClients,
  address: readonly number[] | null,
): ListEntry | undefined {
  let found: ListEntry | undefined;
  if (address === null) return found;
  for (const [file, networks] of files) {
    const name = networks.find(address);
    const entry = name === undefined ? undefined : clients.named.get(namedIn(file, name));
    if (entry?.list === 'deny') return entry;
    found ??= entry;
  }
  return found;
}
