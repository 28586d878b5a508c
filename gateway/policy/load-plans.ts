/** Loads the file of `plans`, which has one client a line. */
import { addLines } from './load-lines.ts';
import { DIGEST, networkOf } from './load-overrides.ts';
import { NetworkTable } from './network-table.ts';
import { PLAN } from './overrides.ts';
import type { Plans } from './plans.ts';
import { Mistake, type Report } from './problems.ts';
import { type ReferencedFiles, versionOf } from './referenced-files.ts';
import type { PolicyFile } from './schema.ts';

const LINE = /^\s*(\S+)\s+(\S+)\s*$/;

/** @returns null if no file is named, or it has mistakes, which are reported */
export function loadPlans(
  { plans }: Pick<PolicyFile, 'plans'>,
  referenced: ReferencedFiles,
  report: Report,
): Plans | null {
  if (plans === undefined) return null;
  const digests = new Map<string, string>();
  const networks = new NetworkTable<string>();
  const text = addLines(plans.file, ['plans', 'file'], referenced, report, (line) => {
    const [, client = '', plan = ''] = LINE.exec(line) ?? [];
    if (!PLAN.test(plan))
      throw new Mistake(
        `"${line.trim().slice(0, 60)}" names no client and plan`,
        'write DIGEST PLAN or ADDRESS PLAN; a plan has letters, digits, dots, dashes and underscores, at most 64',
      );
    const isDigest = DIGEST.test(client);
    const isNew = isDigest ? !digests.has(client) : networks.add(networkOf(client), plan);
    if (!isNew) throw new Mistake(`${client} appears twice`, 'keep one of them');
    if (isDigest) digests.set(client, plan);
  });
  if (text === null) return null;
  return { digests, networks, size: digests.size + networks.size, version: versionOf(text) };
}
