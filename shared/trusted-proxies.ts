/**
 * Reads GATEWAY_TRUSTED_PROXIES and API_TRUSTED_PROXIES: a hop count, or networks. Networks may stand in files, which
 * may change while the program runs.
 */
import {
  type Network,
  type ProxyTrust,
  parseNetwork,
  type TrustedFile,
  type TrustedNetworks,
} from './client-address.ts';
import { NetworkMap } from './network-map.ts';
import { readRegularFile } from './regular-file.ts';

const HOPS_MAX = 32;
const FILES_MAX = 8;
/** A file is parsed on the event loop, between requests of clients, so its size is limited. */
const LINES_MAX = 10_000;
const CHARACTERS_MAX = 1_048_576;
const MISTAKES_MAX = 10;

const NAMED: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1/128']],
  // The list of https://www.cloudflare.com/ips/ of September 2023. docs/operating.md names this date too.
  [
    'cloudflare',
    [
      '173.245.48.0/20',
      '103.21.244.0/22',
      '103.22.200.0/22',
      '103.31.4.0/22',
      '141.101.64.0/18',
      '108.162.192.0/18',
      '190.93.240.0/20',
      '188.114.96.0/20',
      '197.234.240.0/22',
      '198.41.128.0/17',
      '162.158.0.0/15',
      '104.16.0.0/13',
      '104.24.0.0/14',
      '172.64.0.0/13',
      '131.0.72.0/22',
      '2400:cb00::/32',
      '2606:4700::/32',
      '2803:f800::/32',
      '2405:b500::/32',
      '2405:8100::/32',
      '2a06:98c0::/29',
      '2c0f:f248::/32',
    ],
  ],
]);

/**
 * @param text empty or `none`; a hop count such as `1`; or addresses, CIDRs, `loopback` (127.0.0.0/8 and ::1),
 *   `cloudflare` and files, separated by commas. A file begins with `/`, `./` or `../`
 * @param read reads a file. @throws Error with a `code`
 * @throws Error that says which entry is wrong and what would be right
 */
export function parseTrustedProxies(text: string, read = readRegularFile): ProxyTrust {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === 'none') return { kind: 'none' };
  if (/^\d+$/.test(trimmed)) {
    const hops = Number(trimmed);
    if (hops > HOPS_MAX)
      throw new Error(`${hops} hops are more than ${HOPS_MAX}; give the number of proxies in front`);
    return hops === 0 ? { kind: 'none' } : { kind: 'hops', hops };
  }
  const entries = trimmed
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const isFile = (entry: string): boolean => /^\.{0,2}\//.test(entry);
  const files = [...new Set(entries.filter(isFile))];
  if (files.length > FILES_MAX)
    throw new Error(`${files.length} files are more than ${FILES_MAX}; join some`);
  const fixed = entries
    .filter((entry) => !isFile(entry))
    .flatMap((entry) => NAMED.get(entry) ?? [entry])
    .map((entry) =>
      parseNetwork(
        entry,
        `"${entry}" is neither an address, a CIDR such as 10.0.0.0/8, the words loopback or cloudflare, a file such as ./proxies.txt, nor a hop count such as 1`,
      ),
    );
  return { kind: 'cidrs', networks: new ProxyNetworks(fixed, files, read) };
}

class ProxyNetworks implements TrustedNetworks {
  readonly files: readonly ProxyFile[];
  readonly #fixed: readonly Network[];
  #index: NetworkMap<true>;
  version = 0;

  constructor(fixed: readonly Network[], files: readonly string[], read: (file: string) => string) {
    this.#fixed = fixed;
    this.files = files.map((file) => new ProxyFile(file, textOf(file, read), () => this.#changed()));
    this.#index = indexOf(this.all);
  }

  get all(): readonly Network[] {
    return [this.#fixed, ...this.files.map(({ networks }) => networks)].flat();
  }

  has(address: readonly number[]): boolean {
    return this.#index.find(address) === true;
  }

  #changed(): void {
    this.#index = indexOf(this.all);
    this.version++;
  }
}

class ProxyFile implements TrustedFile {
  readonly name: string;
  readonly firstText: string;
  networks: readonly Network[];
  problem: string | null = null;
  readonly #onChange: () => void;

  constructor(name: string, text: string, onChange: () => void) {
    this.name = name;
    this.firstText = text;
    this.networks = networksIn(text, name);
    this.#onChange = onChange;
  }

  use(networks: readonly Network[]): void {
    this.networks = networks;
    this.problem = null;
    this.#onChange();
  }

  refuse(problem: string): void {
    this.problem = problem;
  }
}

function textOf(file: string, read: (file: string) => string): string {
  try {
    return read(file);
  } catch (error) {
    throw new Error(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/**
 * Reads a file of trusted networks: one address or CIDR a line, and comments after `#`.
 *
 * @throws Error with the lines that are wrong
 */
export function networksIn(text: string, file: string): readonly Network[] {
  if (text.length > CHARACTERS_MAX) throw new Error(`${file} has more than 1 MiB; name fewer networks`);
  const lines = text.split('\n');
  if (lines.length > LINES_MAX + 1)
    throw new Error(`${file} has more than ${LINES_MAX} lines; name fewer networks`);
  const networks: Network[] = [];
  const mistakes: string[] = [];
  for (const [i, line] of lines.entries()) {
    const entry = line.replace(/#.*/, '').trim();
    if (entry === '') continue;
    try {
      networks.push(
        parseNetwork(entry, `"${entry.slice(0, 60)}" is neither an address nor a CIDR such as 10.0.0.0/8`),
      );
    } catch (error) {
      mistakes.push(`${file}:${i + 1}: ${(error as Error).message}`);
      if (mistakes.length === MISTAKES_MAX) break;
    }
  }
  if (mistakes.length > 0) throw new Error(mistakes.join('; '));
  // A program that failed to fetch a list often leaves an empty file. Without proxies, all clients would count as one.
  if (networks.length === 0)
    throw new Error(`${file} names no network; name one, or remove the file from the setting`);
  return networks;
}

function indexOf(networks: readonly Network[]): NetworkMap<true> {
  const index = new NetworkMap<true>();
  for (const network of networks) index.add(network, true);
  return index;
}
