/** The keys `plan` and `plans`, and the file of `plans`, which has one client a line. */

import { NetworkList } from '#gateway/policy/network-table.ts';
import { PLAN } from '#gateway/policy/overrides.ts';
import type { Plans } from '#gateway/policy/plans.ts';
import { Mistake } from '#gateway/policy/problems.ts';
import { versionOf } from '#gateway/policy/referenced-files.ts';
import { type FilePlace, fileKey } from './key.ts';
import { addLines } from './lines.ts';
import { DIGEST, networkOf } from './named-clients.ts';
import { fieldName, fileName, only } from './schema-parts.ts';

export const plan = fileKey({
  schema: {
    type: 'object',
    minProperties: 1,
    properties: {
      header: { ...fieldName, description: 'the name of a header field, such as x-plan' },
      claim: {
        type: 'string',
        minLength: 1,
        maxLength: 200,
        description: 'the name of a claim of signed tokens, such as plan',
      },
    },
    additionalProperties: false,
    description:
      'where trusted proxies or signed tokens name the plan of a client, such as { header: x-plan } or { claim: plan }',
  },
  more: 'See [Overrides and plans](#overrides-and-plans)',
  read: (plan) => ({ header: plan?.header?.toLowerCase() ?? null, claim: plan?.claim ?? null }),
});

export const plans = fileKey({
  schema: {
    ...only('file', {
      ...fileName,
      description: 'the name of a file in the same folder, with one client a line, such as 192.0.2.7 gold',
    }),
    description: 'a file with the plans of clients, such as { file: plans.txt }',
  },
  more: 'See [Overrides and plans](#overrides-and-plans)',
  read: (plans, place) => (plans === undefined ? null : loadPlans(plans.file, place)),
});

const LINE = /^\s*(\S+)\s+(\S+)\s*$/;

/** @returns null if the file has mistakes, which are reported */
function loadPlans(name: string, { referenced, report }: FilePlace): Plans | null {
  const digests = new Map<string, string>();
  const networks = new NetworkList<string>();
  const text = addLines(name, ['file'], referenced, report, (line) => {
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
  return {
    digests,
    networks: networks.table(),
    size: digests.size + networks.size,
    version: versionOf(text),
  };
}
