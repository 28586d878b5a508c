/** The keys `plan` and `plans`, and the file of `plans`, which has one client a line. */
import { ClientTable, PLAN } from '#gateway/policy/clients.ts';
import { Mistake } from '#gateway/policy/problems.ts';
import { type FilePlace, fileKey } from './key.ts';
import { readLines } from './lines.ts';
import { digestOrAddress, nameClient } from './named-clients.ts';
import { fieldName, fileName, object, only, shortText } from './schema-parts.ts';

export const plan = fileKey({
  schema: {
    ...object(
      [],
      {
        header: { ...fieldName, description: 'the name of a header field, such as x-plan' },
        claim: shortText(200, 'the name of a claim of signed tokens, such as plan'),
      },
      'where trusted proxies or signed tokens name the plan of a client, such as { header: x-plan } or { claim: plan }',
    ),
    minProperties: 1,
  },
  see: '#overrides-and-plans',
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
  see: '#overrides-and-plans',
  read: (plans, place) => (plans === undefined ? null : readPlans(plans.file, place)),
});

/** @returns the plan of each client; null if the file has mistakes, which are reported */
function readPlans(name: string, place: FilePlace): ClientTable<string> | null {
  const clients = new ClientTable<string>();
  const text = readLines({ name, at: ['file'] }, place, (line) => {
    const [client = '', plan = '', ...more] = line.split(/\s+/);
    if (!PLAN.test(plan) || more.length > 0)
      throw new Mistake(
        `"${line.slice(0, 60)}" names no client and plan`,
        'write DIGEST PLAN or ADDRESS PLAN; a plan has letters, digits, dots, dashes and underscores, at most 64',
      );
    nameClient(clients, digestOrAddress(client), client, plan);
  });
  return text === null ? null : clients;
}
