/** The lists `allow` and `deny` of a policy file. */
import type { ListEntry, Lists } from './lists.ts';
import { addLines } from './load-lines.ts';
import { DIGEST, networkOf, programName } from './load-overrides.ts';
import { NetworkTable } from './network-table.ts';
import { Mistake, type Path, type Report, reportMistake } from './problems.ts';
import { type ReferencedFiles, versionOf } from './referenced-files.ts';
import { parseRoute, type Route } from './route.ts';
import type { PolicyFile } from './schema.ts';
import { PROGRAM_NAME } from './user-agent.ts';

type DenyEntry = NonNullable<PolicyFile['deny']>[number];

/** Maximum number of routes, because each policy is compared with each of them. */
const ROUTES_MAX = 1000;

const NAMES = ['allow', 'deny'] as const;

/** @returns null if there are no entries, so that requests skip the lists */
export function buildLists(
  file: PolicyFile,
  referenced: ReferencedFiles,
  report: Report,
  lineOf: (path: Path) => number,
): Lists | null {
  const digests = new Map<string, ListEntry>();
  const networks = new NetworkTable<ListEntry>();
  const programs = new Map<string, ListEntry>();
  const routes = new Map<string, readonly [Route, ListEntry]>();
  const entries: ListEntry[] = [];
  for (const list of NAMES) addEntries(list, false);
  // Files come last, so that a program that renews one cannot make an entry of the policy file a mistake. Deny comes
  // before allow.
  for (const list of NAMES.toReversed()) addEntries(list, true);
  return entries.length === 0 ? null : { digests, networks, programs, routes: [...routes.values()], entries };

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
    const { address, digest, route, userAgent, file: name } = written;
    if ([address, digest, route, userAgent, name].filter((one) => one !== undefined).length !== 1)
      throw new Mistake(
        'an entry names one thing',
        entry.list === 'deny'
          ? 'write one of address, digest, userAgent, route and file'
          : 'write one of address, digest and file',
      );
    if (name !== undefined) {
      addFile(entry, name, [...here, 'file']);
      return;
    }
    if (digest !== undefined && !DIGEST.test(digest))
      throw new Mistake(`"${digest}" is not a digest`, 'write the 22 characters that the access log shows');
    if (!isAdded(entry, written))
      throw new Mistake(`${entry.text} appears twice in allow and deny`, 'keep one of them');
    entries.push(entry);
  }

  /** Programs renew such files, so a repeated entry is no mistake; the first one counts. */
  function addFile(entry: ListEntry, name: string, here: Path): void {
    const text = addLines(name, here, referenced, report, (line) => {
      const [, word = '', rest = ''] = /^\s*([^\s;#]+)\s*(?:[;#].*)?(.*)$/.exec(line) ?? [];
      // The line contains only a comment.
      if (word === '') return;
      if (rest !== '')
        throw new Mistake(`"${line.trim().slice(0, 60)}" names two things`, 'write one a line');
      if (entry.list === 'allow' || !PROGRAM_NAME.test(word)) networks.add(networkOf(word), entry);
      else if (!programs.has(word.toLowerCase())) programs.set(word.toLowerCase(), entry);
    });
    if (text === null) return;
    entries.push({ ...entry, text: `${name}, version ${versionOf(text)}` });
  }

  /** @returns false if the list already contains it */
  function isAdded(entry: ListEntry, { address, digest, route, userAgent }: DenyEntry): boolean {
    if (userAgent !== undefined) {
      const names = [userAgent].flat().map(programName);
      if (names.some((name, i) => programs.has(name) || names.indexOf(name) !== i)) return false;
      for (const name of names) programs.set(name, entry);
      return true;
    }
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
  const { address, digest, route, userAgent, file, reason = null } = written;
  const names = route === undefined ? 'client' : 'route';
  const { status = names === 'route' ? 403 : 429 } = written;
  return {
    list,
    names,
    text: address ?? digest ?? route ?? file ?? [userAgent ?? []].flat().join(', '),
    line,
    status,
    reason,
  };
}
