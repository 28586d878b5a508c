/** The lists `allow` and `deny` of a policy file. */
import type { ListEntry, Lists } from './lists.ts';
import { DIGEST, networkOf } from './load-overrides.ts';
import { NetworkTable } from './network-table.ts';
import { Mistake, type Path, type Report, reportMistake } from './problems.ts';
import type { PolicyFile } from './schema.ts';

type DenyEntry = NonNullable<PolicyFile['deny']>[number];

const NAMES = ['allow', 'deny'] as const;

/** @returns null where there are none: nothing is then looked up */
export function buildLists(file: PolicyFile, report: Report, lineOf: (path: Path) => number): Lists | null {
  const digests = new Map<string, ListEntry>();
  const networks = new NetworkTable<ListEntry>();
  const texts: string[] = [];
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
  return texts.length === 0 ? null : { digests, networks, texts };

  function add(entry: ListEntry, { address, digest }: DenyEntry): void {
    if ((address === undefined) === (digest === undefined))
      throw new Mistake('an entry names one client or network', 'write address: CIDR or digest: DIGEST');
    if (digest !== undefined && !DIGEST.test(digest))
      throw new Mistake(`"${digest}" is not a digest`, 'write the 22 characters that the access log shows');
    const isNew =
      address === undefined ? !digests.has(digest ?? '') : networks.add(networkOf(address), entry);
    if (!isNew) throw new Mistake(`${entry.text} appears twice in allow and deny`, 'keep one of them');
    if (digest !== undefined) digests.set(digest, entry);
    const status = entry.list === 'deny' && entry.status === 403 ? ' with 403' : '';
    texts.push(`${entry.list} ${entry.text}${status}`);
  }
}

function listEntry(list: ListEntry['list'], written: DenyEntry, line: number): ListEntry {
  const { address, digest, status = 429, reason = null } = written;
  const text = address ?? digest ?? '';
  return { list, text, line, status, reason };
}
