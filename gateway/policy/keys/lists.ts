/** The keys `allow` and `deny`: lists of clients, networks, programs and routes. */

import type { XStatic } from 'typebox/schema';
import type { HostNames } from '#gateway/policy/host-names.ts';
import type { ListEntry, Lists, SkippedLines, UnknownName } from '#gateway/policy/lists.ts';
import { NetworkList } from '#gateway/policy/network-table.ts';
import { Mistake, type Path, type Report, reportMistake } from '#gateway/policy/problems.ts';
import { type ReferencedFiles, versionOf } from '#gateway/policy/referenced-files.ts';
import type { HostRoute } from '#gateway/policy/route.ts';
import { longestName } from '#gateway/policy/user-agent.ts';
import { parseHostRoute, readHosts } from './hosts.ts';
import { fileKey } from './key.ts';
import { addLines } from './lines.ts';
import { readListedLine } from './listed-line.ts';
import { DIGEST, networkOf, programName } from './named-clients.ts';
import { NamedLists, NETWORK_NAME, type NetworkLoader } from './networks.ts';
import { fileName, hostList, list, route as routeText } from './schema-parts.ts';

/** YAML reads a name such as 64500 as a number. */
const networkName = { type: ['string', 'integer'], pattern: `^${NETWORK_NAME}$` } as const;

const listed = {
  address: { type: 'string', description: 'an address or a network such as 203.0.113.0/24' },
  digest: { type: 'string', description: '22 characters, as the access log shows them under identities' },
  network: {
    ...fileName,
    description: 'the name of a file in the same folder, with one network and its name a line',
  },
  name: {
    anyOf: [networkName, { type: 'array', items: networkName, minItems: 1, maxItems: 1000 }],
    description: 'a name in the file of network, such as AS64500, or a list of names',
  },
  file: {
    ...fileName,
    description: 'the name of a file in the same folder, with one network or program a line',
  },
  lenient: {
    type: 'boolean',
    description: 'for a file: true skips lines that cannot be used, with a warning',
  },
  hosts: hostList(', for which the entry applies'),
} as const;

const allowed = {
  type: 'object',
  properties: listed,
  minProperties: 1,
  additionalProperties: false,
  description: 'write { address: CIDR }, { digest: DIGEST }, { network: FILE, name: NAME } or { file: NAME }',
} as const;

const denied = {
  type: 'object',
  properties: {
    ...listed,
    userAgent: {
      anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 1000 }],
      description: 'the name of a program in its User-Agent, such as GPTBot, or a list of names',
    },
    route: routeText('METHODS PATH, such as * /internal/*'),
    status: {
      enum: [403, 429],
      description: '403 or 429; unless given, it is 429 for a client and 403 for a route',
    },
    reason: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
      description:
        'the reason shown to the client: one line of at most 200 characters, without control characters',
    },
  },
  minProperties: 1,
  additionalProperties: false,
  description:
    'write one of address, digest, network, userAgent, route and file, with status and reason if you like',
} as const;

export const allow = fileKey({
  schema: list(allowed, 10_000, 'a list of clients and networks that no policy counts'),
  more: 'At most 10,000. See [Allow and deny](#allow-and-deny)',
});

export const deny = fileKey({
  schema: list(denied, 10_000, 'a list of clients, networks and routes that are refused'),
  more: 'At most 10,000, crawlers too. See [Allow and deny](#allow-and-deny)',
});

type DenyEntry = XStatic<typeof denied>;

/** The clients that the lists name for some hosts, or for all, while the file is read. */
interface ClientTables {
  readonly hosts: HostNames | null;
  readonly digests: Map<string, ListEntry>;
  readonly networks: NetworkList<ListEntry>;
  readonly named: NamedLists;
  readonly programs: Map<string, ListEntry>;
}

interface WrittenLists {
  readonly allow?: readonly XStatic<typeof allowed>[];
  readonly deny?: readonly DenyEntry[];
  readonly ignoreCase?: boolean;
}

/** Maximum number of routes, because each policy is compared with each of them. */
const ROUTES_MAX = 1000;

const NAMES = ['allow', 'deny'] as const;

/** @returns null if there are no entries, so that requests skip the lists */
export function buildLists(
  file: WrittenLists,
  referenced: ReferencedFiles,
  networkFiles: NetworkLoader,
  report: Report,
  lineOf: (path: Path) => number,
): Lists | null {
  const scopes = new Map<string, ClientTables>();
  const unknownNames: UnknownName[] = [];
  const skippedLines: SkippedLines[] = [];
  const routes = new Map<string, readonly [HostRoute, ListEntry]>();
  const entries: ListEntry[] = [];
  for (const list of NAMES) addEntries(list, false);
  // Files come last, so that a program that renews one cannot make an entry of the policy file a mistake. Deny comes
  // before allow.
  for (const list of NAMES.toReversed()) addEntries(list, true);
  if (entries.length === 0) return null;
  const clients = [...scopes.values()]
    .map((tables) => ({ ...tables, networks: tables.networks.table(), named: tables.named.all() }))
    .sort((a, b) => Number(a.hosts === null) - Number(b.hosts === null));
  return {
    clients,
    hasDigests: clients.some(({ digests }) => digests.size > 0),
    programWordsMax: Math.max(0, ...clients.map(({ programs }) => longestName(programs.keys()))),
    unknownNames,
    skippedLines,
    routes: [...routes.values()],
    entries,
  };

  /** Returns the tables for some hosts, or for all. */
  function tablesFor(hosts: readonly string[] | undefined, here: Path): ClientTables {
    const key = hosts?.toSorted().join(' ') ?? '';
    let tables = scopes.get(key);
    if (tables === undefined) {
      tables = {
        hosts: hosts === undefined ? null : readHosts(hosts, hostReport(here)),
        digests: new Map(),
        networks: new NetworkList(),
        named: new NamedLists(networkFiles, unknownNames),
        programs: new Map(),
      };
      scopes.set(key, tables);
    }
    return tables;
  }

  function hostReport(here: Path): Report {
    return (path, ...mistake) => report([...here, 'hosts', ...path], ...mistake);
  }

  function addEntries(list: ListEntry['list'], areFiles: boolean): void {
    // entries() would also return the holes of a list.
    for (const [i, written] of Object.entries(file[list] ?? [])) {
      if ((written.file !== undefined) !== areFiles) continue;
      const here: Path = [list, Number(i)];
      try {
        add(listEntry(list, written, lineOf(here)), written, here);
      } catch (error) {
        reportMistake(report, here, error);
      }
    }
  }

  function add(entry: ListEntry, written: DenyEntry, here: Path): void {
    checkEntry(entry.list, written);
    const { digest, file: listFile, hosts } = written;
    if (listFile !== undefined) {
      const skipped = { at: [...here, 'file'], file: listFile, count: 0, first: '' };
      if (written.lenient === true) skippedLines.push(skipped);
      addFile(entry, tablesFor(hosts, here), skipped, written.lenient === true);
      return;
    }
    if (digest !== undefined && !DIGEST.test(digest))
      throw new Mistake(`"${digest}" is not a digest`, 'write the 22 characters that the access log shows');
    if (!isAdded(entry, written, here))
      throw new Mistake(`${entry.text} appears twice in allow and deny`, 'keep one of them');
    entries.push(entry);
  }

  /** Programs renew such files, so a repeated entry is no mistake; the first one counts. */
  function addFile(
    entry: ListEntry,
    { networks, programs }: ClientTables,
    skipped: SkippedLines,
    isLenient: boolean,
  ): void {
    const { file: name, at } = skipped;
    const add = (line: string): void => {
      const listed = readListedLine(line, entry.list === 'deny');
      if (listed === null) return;
      if ('network' in listed) networks.add(listed.network, entry);
      else if (!programs.has(listed.program)) programs.set(listed.program, entry);
    };
    const skip = (number: number, what: string): void => {
      if (skipped.count++ === 0) skipped.first = `line ${number}: ${what}`;
    };
    const text = addLines(name, at, referenced, report, add, { skip: isLenient ? skip : null });
    if (text === null) return;
    entries.push({ ...entry, text: `${entry.text}, version ${versionOf(text)}` });
  }

  /** @returns false if the list already contains it */
  function isAdded(
    entry: ListEntry,
    { address, digest, route, hosts, userAgent, network, name }: DenyEntry,
    here: Path,
  ): boolean {
    if (route !== undefined)
      return isRouteAdded(entry, parseHostRoute(route, hosts, file.ignoreCase, hostReport(here)));
    const { programs, networks, named, digests } = tablesFor(hosts, here);
    if (userAgent !== undefined) {
      const names = [userAgent].flat().map(programName);
      if (names.some((name, i) => programs.has(name) || names.indexOf(name) !== i)) return false;
      for (const name of names) programs.set(name, entry);
      return true;
    }
    if (network !== undefined) return named.add(network, [name ?? []].flat().map(String), entry, here);
    if (address !== undefined) return networks.add(networkOf(address), entry);
    if (digest === undefined || digests.has(digest)) return false;
    digests.set(digest, entry);
    return true;
  }

  function isRouteAdded(entry: ListEntry, parsed: HostRoute): boolean {
    if (routes.has(parsed.text)) return false;
    if (routes.size === ROUTES_MAX)
      throw new Mistake(`deny has more than ${ROUTES_MAX} routes`, 'write wider routes');
    routes.set(parsed.text, [parsed, entry]);
    return true;
  }
}

/** @throws Mistake if the keys of an entry do not go together */
function checkEntry(list: ListEntry['list'], written: DenyEntry): void {
  const { address, digest, route, userAgent, network, file: listFile } = written;
  if ([address, digest, route, userAgent, network, listFile].filter((one) => one !== undefined).length !== 1)
    throw new Mistake(
      'an entry names one thing',
      list === 'deny'
        ? 'write one of address, digest, network, userAgent, route and file'
        : 'write one of address, digest, network and file',
    );
  if (written.lenient !== undefined && listFile === undefined)
    throw new Mistake('lenient is for a file', 'remove it');
  if ((network === undefined) !== (written.name === undefined))
    throw new Mistake(
      'network and name belong together',
      'write both, such as { network: networks.txt, name: AS64500 }',
    );
}

function listEntry(list: ListEntry['list'], written: DenyEntry, line: number): ListEntry {
  const { address, digest, route, hosts, userAgent, network, name, file, reason = null } = written;
  const names = route === undefined ? 'client' : 'route';
  const listedNames = [userAgent ?? (network === undefined ? [] : [network, ...[name ?? []].flat()])]
    .flat()
    .join(', ');
  const { status = names === 'route' ? 403 : 429 } = written;
  return {
    list,
    names,
    text: forHosts(address ?? digest ?? route ?? file ?? listedNames, hosts),
    line,
    status,
    reason,
  };
}

function forHosts(text: string, hosts: readonly string[] = []): string {
  return hosts.length === 0 ? text : `${text} for ${hosts.join(', ')}`;
}
