/** The keys `allow` and `deny`: lists of clients, networks, programs and routes. */
import type { XStatic } from 'typebox/schema';
import { type ClientName, ClientTable } from '#gateway/policy/clients.ts';
import { type ListEntry, type ListedClients, type Lists, namedIn } from '#gateway/policy/lists.ts';
import { attempt, Mistake, type Path, type Report } from '#gateway/policy/problems.ts';
import { versionOf } from '#gateway/policy/referenced-files.ts';
import { type HostRoute, parseHostRoute, readHosts } from '#gateway/policy/route.ts';
import { longestName } from '#gateway/policy/user-agent.ts';
import { fileKey } from './key.ts';
import { type LinePlace, readLines } from './lines.ts';
import { CLIENTS, listedClient } from './named-clients.ts';
import { type NetworkFile, type NetworkLoader, networkName } from './networks.ts';
import {
  fileName,
  flag,
  hostList,
  list,
  object,
  route as routeText,
  shortText,
  some,
  text,
} from './schema-parts.ts';

const listed = {
  address: text('an address or a network such as 203.0.113.0/24'),
  digest: text('22 characters, as the access log shows them under identities'),
  network: {
    ...fileName,
    description: 'the name of a file in the same folder, with one network and its name a line',
  },
  name: {
    anyOf: [networkName, some(networkName, 1000, 'names')],
    description: 'a name in the file of network, such as AS64500, or a list of names',
  },
  file: {
    ...fileName,
    description: 'the name of a file in the same folder, with one network or program a line',
  },
  lenient: flag('for a file: true skips lines that cannot be used, with a warning'),
  hosts: hostList(', for which the entry applies'),
} as const;

const allowed = object(
  [],
  listed,
  'write { address: CIDR }, { digest: DIGEST }, { network: FILE, name: NAME } or { file: NAME }',
);

const denied = object(
  [],
  {
    ...listed,
    userAgent: {
      anyOf: [{ type: 'string' }, some({ type: 'string' }, 1000, 'names')],
      description: 'the name of a program in its User-Agent, such as GPTBot, or a list of names',
    },
    route: routeText('METHODS PATH, such as * /internal/*'),
    status: {
      enum: [403, 429],
      description: '403 or 429; unless given, it is 429 for a client and 403 for a route',
    },
    reason: {
      ...shortText(
        200,
        'the reason shown to the client: one line of at most 200 characters, without control characters',
      ),
      pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
    },
  },
  'write one of address, digest, network, userAgent, route and file, with status and reason if you like',
);

export const allow = fileKey({
  schema: list(allowed, 10_000, 'a list of clients and networks that no policy counts'),
  more: 'At most 10,000',
  see: '#allow-and-deny',
});

export const deny = fileKey({
  schema: list(denied, 10_000, 'a list of clients, networks and routes that are refused'),
  more: 'At most 10,000, crawlers too',
  see: '#allow-and-deny',
});

type DenyEntry = XStatic<typeof denied>;

interface WrittenLists {
  readonly allow?: readonly XStatic<typeof allowed>[];
  readonly deny?: readonly DenyEntry[];
}

interface ListPlace extends LinePlace {
  readonly ignoreCase: boolean;
  readonly networks: NetworkLoader;
  readonly lineOf: (path: Path) => number;
}

/** Tables to which entries are added while the file is read. */
interface Tables extends ListedClients {
  readonly files: Map<string, NetworkFile>;
}

/** Maximum number of routes, because each policy is compared with each of them. */
const ROUTES_MAX = 1000;

/** The keys of which an entry has one. */
const NAMING = ['address', 'digest', 'network', 'userAgent', 'route', 'file'] as const;

/** @returns null if there are no entries, so that requests skip the lists */
export function readLists({ allow, deny }: WrittenLists, place: ListPlace): Lists | null {
  const builder = new ListBuilder(place);
  builder.addAll('allow', allow, false);
  builder.addAll('deny', deny, false);
  // Files come last, so that a program that renews one cannot make an entry of the policy file a mistake. Deny comes
  // before allow.
  builder.addAll('deny', deny, true);
  builder.addAll('allow', allow, true);
  return builder.finished();
}

class ListBuilder {
  readonly #place: ListPlace;
  readonly #scopes = new Map<string, Tables>();
  readonly #routes = new Map<string, readonly [HostRoute, ListEntry]>();
  readonly #entries: ListEntry[] = [];

  constructor(place: ListPlace) {
    this.#place = place;
  }

  /** Adds the entries of a list that name files, or the others. */
  addAll(list: ListEntry['list'], all: readonly DenyEntry[] = [], areFiles: boolean): void {
    // entries() would also return the holes of a list.
    for (const [i, written] of Object.entries(all)) {
      if ((written.file !== undefined) !== areFiles) continue;
      const here: Path = [list, Number(i)];
      attempt(this.#place.report, here, () => {
        checkEntry(list, written);
        const entry = listEntry(list, written, this.#place.lineOf(here));
        const text = this.#add(entry, written, here);
        if (text !== null) this.#entries.push({ ...entry, text });
      });
    }
  }

  finished(): Lists | null {
    if (this.#entries.length === 0) return null;
    const clients = [...this.#scopes.values()].sort(
      (a, b) => Number(a.hosts === null) - Number(b.hosts === null),
    );
    return {
      clients,
      hasDigests: clients.some(({ clients }) => clients.digests.size > 0),
      programWordsMax: Math.max(0, ...clients.map(({ clients }) => longestName(clients.programs.keys()))),
      routes: [...this.#routes.values()],
      entries: this.#entries,
    };
  }

  /** @returns how reports name the entry; null if it is a file with mistakes, which are reported. @throws Mistake */
  #add(entry: ListEntry, one: DenyEntry, here: Path): string | null {
    const { address, digest, route, hosts, userAgent, network, name, file, lenient = false } = one;
    const hostReport: Report = (path, ...mistake) =>
      this.#place.report([...here, 'hosts', ...path], ...mistake);
    const { text } = entry;
    if (route !== undefined) {
      this.#addRoute(entry, parseHostRoute(route, hosts, this.#place.ignoreCase, hostReport));
      return text;
    }
    const { clients, files } = this.#tablesFor(hosts, hostReport);
    if (file !== undefined) {
      // Programs renew such files, so a repeated entry is no mistake; the first one counts.
      const source = { name: file, at: [...here, 'file'], isLenient: lenient };
      const read = readLines(source, this.#place, (line) => {
        clients.add(listedClient(line, entry.list === 'deny'), entry);
      });
      return read === null ? null : `${text}, version ${versionOf(read)}`;
    }
    const names = [name ?? []].flat().map(String);
    if (network !== undefined) {
      const { networks } = this.#place;
      files.set(network, networks.of(network, [...here, 'network']));
      networks.expect(network, names, [...here, 'name']);
    }
    const written: ClientName[] = [
      ...(address === undefined ? [] : [CLIENTS.address(address)]),
      ...(digest === undefined ? [] : [CLIENTS.digest(digest)]),
      ...[userAgent ?? []].flat().map(CLIENTS.userAgent),
      ...names.map((one) => ({ kind: 'named' as const, name: namedIn(network ?? '', one) })),
    ];
    if (!written.every((client) => clients.add(client, entry))) throw twice(text);
    return text;
  }

  #addRoute(entry: ListEntry, parsed: HostRoute): void {
    if (this.#routes.has(parsed.text)) throw twice(entry.text);
    if (this.#routes.size === ROUTES_MAX)
      throw new Mistake(`deny has more than ${ROUTES_MAX} routes`, 'write wider routes');
    this.#routes.set(parsed.text, [parsed, entry]);
  }

  /** Returns the tables for some hosts, or for all. */
  #tablesFor(hosts: readonly string[] | undefined, report: Report): Tables {
    const key = hosts?.toSorted().join(' ') ?? '';
    const tables = this.#scopes.get(key) ?? {
      hosts: hosts === undefined ? null : readHosts(hosts, report),
      clients: new ClientTable<ListEntry>(),
      files: new Map(),
    };
    this.#scopes.set(key, tables);
    return tables;
  }
}

function twice(text: string): Mistake {
  return new Mistake(`${text} appears twice in allow and deny`, 'keep one of them');
}

/** @throws Mistake if the keys of an entry do not go together */
function checkEntry(list: ListEntry['list'], written: DenyEntry): void {
  if (NAMING.filter((key) => written[key] !== undefined).length !== 1)
    throw new Mistake(
      'an entry names one thing',
      `write one of address, digest, network${list === 'deny' ? ', userAgent, route' : ''} and file`,
    );
  if (written.lenient !== undefined && written.file === undefined)
    throw new Mistake('lenient is for a file', 'remove it');
  if ((written.network === undefined) !== (written.name === undefined))
    throw new Mistake(
      'network and name belong together',
      'write both, such as { network: networks.txt, name: AS64500 }',
    );
}

function listEntry(list: ListEntry['list'], written: DenyEntry, line: number): ListEntry {
  const { name = [], hosts, reason = null } = written;
  const names = written.route === undefined ? 'client' : 'route';
  const { status = names === 'route' ? 403 : 429 } = written;
  const text = [...NAMING.map((key) => written[key] ?? []), name].flat().join(', ');
  const where = hosts === undefined ? '' : ` for ${hosts.join(', ')}`;
  return { list, names, text: text + where, line, status, reason };
}
