/** The lists `allow` and `deny` of a policy file. */
import type { ListEntry, Lists } from './lists.ts';
import { DIGEST, networkOf } from './load-overrides.ts';
import { NetworkTable } from './network-table.ts';
import { Mistake, type Path, type Report, reportMistake } from './problems.ts';
import { parseRoute, type Route } from './route.ts';
import type { PolicyFile } from './schema.ts';

type DenyEntry = NonNullable<PolicyFile['deny']>[number];

/** Each policy is compared with each of them. */
const ROUTES_MAX = 1000;

const NAMES = ['allow', 'deny'] as const;

/** @returns null where there are none: nothing is then looked up */
export function buildLists(file: PolicyFile, report: Report, lineOf: (path: Path) => number): Lists | null {
  const digests = new Map<string, ListEntry>();
  const networks = new NetworkTable<ListEntry>();
  const routes = new Map<string, readonly [Route, ListEntry]>();
  const entries: ListEntry[] = [];
  for (const list of NAMES) {
    // Not entries(): a list may have holes.
    for (const [i, written] of Object.entries(file[list] ?? [])) {
      const here: Path = [list, Number(i)];
      try {
        add(listEntry(list, written, lineOf(here)), written);
      } catch (error) {
        reportMistake(report, here, error);
      }
    }
  }
  return entries.length === 0 ? null : { digests, networks, routes: [...routes.values()], entries };

  function add(entry: ListEntry, written: DenyEntry): void {
    const { address, digest, route } = written;
    if ([address, digest, route].filter((name) => name !== undefined).length !== 1)
      throw new Mistake(
        'an entry names one client, network or route',
        entry.list === 'deny'
          ? 'write address: CIDR, digest: DIGEST or route: ROUTE'
          : 'write address: CIDR or digest: DIGEST',
      );
    if (digest !== undefined && !DIGEST.test(digest))
      throw new Mistake(`"${digest}" is not a digest`, 'write the 22 characters that the access log shows');
    if (!isAdded(entry, written))
      throw new Mistake(`${entry.text} appears twice in allow and deny`, 'keep one of them');
    entries.push(entry);
  }

  /** @returns false: it is there already */
  function isAdded(entry: ListEntry, { address, digest, route }: DenyEntry): boolean {
    if (address !== undefined) return networks.add(networkOf(address), entry);
    if (digest !== undefined) {
      if (digests.has(digest)) return false;
      digests.set(digest, entry);
      return true;
    }
    const parsed = parseRoute(route ?? '', file.ignoreCase);
    if (routes.has(parsed.text)) return false;
    if (routes.size === ROUTES_MAX)
      throw new Mistake(`deny has more than ${ROUTES_MAX} routes`, 'write wider routes');
    routes.set(parsed.text, [parsed, entry]);
    return true;
  }
}

function listEntry(list: ListEntry['list'], written: DenyEntry, line: number): ListEntry {
  const { address, digest, route, reason = null } = written;
  const names = route === undefined ? 'client' : 'route';
  const { status = names === 'route' ? 403 : 429 } = written;
  return { list, names, text: address ?? digest ?? route ?? '', line, status, reason };
}
