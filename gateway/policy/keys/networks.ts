/** Reads files of networks with names, such as the providers of addresses. Each line has a network and its name. */
import { attempt, Mistake, type Path } from '#gateway/policy/problems.ts';
import { NetworkMap } from '#shared/network-map.ts';
import { type LinePlace, readLines } from './lines.ts';
import { networkOf } from './named-clients.ts';

/** Room for all networks of the internet by their providers, which are 1.3 million lines. */
const BYTES_MAX = 67_108_864;

const NETWORK_NAME = '[A-Za-z0-9][A-Za-z0-9._~-]{0,63}';

/** Schema of a name. YAML reads one such as 64500 as a number. */
export const networkName = { type: ['string', 'integer'], pattern: `^${NETWORK_NAME}$` } as const;

const LINE = new RegExp(`^(\\S+)[ \\t]+(${NETWORK_NAME})$`);

/** Names of networks, from one file. */
export class NetworkFile {
  text = '';
  /** Each name once, because lines share them. */
  readonly #names = new Map<string, string>();
  readonly #networks = new NetworkMap<string>();

  get size(): number {
    return this.#networks.size;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  find(address: readonly number[]): string | undefined {
    return this.#networks.find(address);
  }

  /** @throws Mistake */
  addLine(line: string): void {
    const [, text, written = ''] = LINE.exec(line) ?? [];
    if (text === undefined)
      throw new Mistake(
        `"${line.slice(0, 60)}" is not a network and its name`,
        'write NETWORK NAME, such as 203.0.113.0/24 AS64500; a name has letters, digits, dots, dashes and underscores, at most 64',
      );
    const name = this.#names.get(written) ?? written;
    const network = networkOf(text);
    if (this.#networks.add(network, name)) this.#names.set(name, name);
    const known = this.#networks.get(network);
    if (known !== name) throw new Mistake(`${text} has two names, ${known} and ${name}`, 'keep one of them');
  }
}

/**
 * The files in use by name, because most reloads change only the policy file. With 600,000 lines, such a reload takes
 * 30 ms instead of 6 s. An entry is empty once no policy file uses it.
 */
const inUse = new Map<string, WeakRef<NetworkFile>>();

/** Each file is read once, however many keys name it. */
export class NetworkLoader {
  readonly #place: LinePlace;
  readonly #files = new Map<string, NetworkFile>();

  constructor(place: LinePlace) {
    this.#place = place;
  }

  /** @returns an empty one if there are mistakes, which are reported for the first key that names the file */
  of(name: string, at: Path): NetworkFile {
    const file = this.#files.get(name) ?? this.#read(name, at);
    this.#files.set(name, file);
    this.#place.referenced.sizes.set(name, file.size);
    return file;
  }

  /** Notes which of the names the file does not have. They may come with its next version. */
  expect(name: string, names: Iterable<string>, at: Path): void {
    const { notes } = this.#place.referenced;
    for (const one of names)
      if (this.#files.get(name)?.has(one) === false)
        notes.push([at, `${name} has no network of ${one}`, 'correct the name, or remove it']);
  }

  #read(name: string, at: Path): NetworkFile {
    const { referenced, report } = this.#place;
    const sent = attempt(report, at, () => referenced.text(name, BYTES_MAX));
    const known = inUse.get(name)?.deref();
    if (sent !== null && sent === known?.text) return known;
    const file = new NetworkFile();
    const source = { name, at, bytesMax: BYTES_MAX };
    if (sent === null || readLines(source, this.#place, (line) => file.addLine(line)) === null)
      return new NetworkFile();
    file.text = sent;
    inUse.set(name, new WeakRef(file));
    return file;
  }
}
