/** Reads files of networks with names, such as the providers of addresses. Each line has a network and its name. */
import type { ListEntry, NamedNetworks, UnknownName } from '#gateway/policy/lists.ts';
import { NetworkList, type NetworkTable } from '#gateway/policy/network-table.ts';
import { Mistake, type Path, type Report } from '#gateway/policy/problems.ts';
import type { ReferencedFiles } from '#gateway/policy/referenced-files.ts';
import { addLines } from './lines.ts';
import { networkOf } from './named-clients.ts';

/** Room for all networks of the internet by their providers, which are 1.3 million lines. */
const MAX = { lines: 2_000_000, bytes: 67_108_864 } as const;

export const NETWORK_NAME = '[A-Za-z0-9][A-Za-z0-9._~-]{0,63}';

const LINE = new RegExp(`^\\s*([^\\s#;]+)[ \\t]+(${NETWORK_NAME})\\s*(?:[#;].*)?\\r?$`);

/** Names of networks, from one file. */
export class NetworkFile {
  readonly text: string;
  readonly size: number;
  readonly #table: NetworkTable<string>;

  constructor(text: string, size: number, table: NetworkTable<string>) {
    this.text = text;
    this.size = size;
    this.#table = table;
  }

  has(name: string): boolean {
    return this.#table.has(name);
  }

  find(address: readonly number[]): string | undefined {
    return this.#table.find(address);
  }
}

/**
 * The files in use by name, because most reloads change only the policy file, and reading a million lines takes long. An
 * entry is empty once no policy file uses it.
 */
const inUse = new Map<string, WeakRef<NetworkFile>>();

/** Each file is read once, however many keys name it. */
export class NetworkLoader {
  readonly #referenced: ReferencedFiles;
  readonly #report: Report;
  readonly #files = new Map<string, NetworkFile>();

  constructor(referenced: ReferencedFiles, report: Report) {
    this.#referenced = referenced;
    this.#report = report;
  }

  /** @returns an empty one if there are mistakes, which are reported for the first key that names the file */
  of(name: string, here: Path): NetworkFile {
    const file = this.#files.get(name) ?? this.#known(name) ?? this.#read(name, here);
    this.#files.set(name, file);
    this.#referenced.listSizes.set(name, file.size);
    return file;
  }

  #known(name: string): NetworkFile | null {
    const known = inUse.get(name)?.deref();
    if (known === undefined) return null;
    try {
      return this.#referenced.text(name, MAX.bytes) === known.text ? known : null;
    } catch (error) {
      // addLines reports it.
      if (error instanceof Mistake) return null;
      throw error;
    }
  }

  #read(name: string, here: Path): NetworkFile {
    const list = new NetworkList<string>();
    const text = addLines(name, here, this.#referenced, this.#report, (line) => addLine(list, line), {
      max: MAX,
    });
    const file = new NetworkFile(text ?? '', list.size, list.table());
    if (text !== null) inUse.set(name, new WeakRef(file));
    return file;
  }
}

/** Entries of the lists allow and deny by the names of networks. */
export class NamedLists {
  readonly #files: NetworkLoader;
  readonly #entries = new Map<NetworkFile, Map<string, ListEntry>>();
  readonly #unknown: UnknownName[];

  /** @param unknown receives the names that their file does not have */
  constructor(files: NetworkLoader, unknown: UnknownName[]) {
    this.#files = files;
    this.#unknown = unknown;
  }

  /** @returns false if one of the names is already listed */
  add(name: string, names: readonly string[], entry: ListEntry, here: Path): boolean {
    const file = this.#files.of(name, [...here, 'network']);
    const entries = this.#entries.get(file) ?? new Map<string, ListEntry>();
    this.#entries.set(file, entries);
    for (const one of names) {
      if (entries.has(one)) return false;
      entries.set(one, entry);
      if (!file.has(one)) this.#unknown.push({ at: [...here, 'name'], name: one, file: name });
    }
    return true;
  }

  all(): readonly NamedNetworks[] {
    return [...this.#entries].map(([file, entries]) => ({ file, entries }));
  }
}

function addLine(list: NetworkList<string>, line: string): void {
  const [, text, name = ''] = LINE.exec(line) ?? [];
  if (text === undefined)
    throw new Mistake(
      `"${line.trim().slice(0, 60)}" is not a network and its name`,
      'write NETWORK NAME, such as 203.0.113.0/24 AS64500; a name has letters, digits, dots, dashes and underscores, at most 64',
    );
  const network = networkOf(text);
  if (list.add(network, name)) return;
  const other = list.valueOf(network);
  if (other !== name) throw new Mistake(`${text} has two names, ${other} and ${name}`, 'keep one of them');
}
