/** `why ID`: why was this request refused? */
import { isDecisionId } from '#gateway/decisions/decision-ids.ts';
import type { DecisionRecord } from '#gateway/decisions/decision-record.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { ADMIN_OPTIONS, askAdmin } from '../admin-client.ts';
import type { AddCommand, CommandContext } from '../command.ts';

interface WhyOptions {
  readonly id: string;
  readonly gateway: string;
  readonly token: string | undefined;
  readonly json: boolean;
}

export const addWhy: AddCommand = (program, context) =>
  program.command(
    'why <id>',
    'Why was this request refused?',
    (command) =>
      command
        .positional('id', {
          type: 'string',
          demandOption: true,
          describe: 'x-gateway-decision of the refused reply, or "decision" of its body',
        })
        .options(ADMIN_OPTIONS)
        .example('$0 why 7k2q9x0m4c5t00000001', 'Names the policy, its line, who was counted and how much'),
    (options) => context.run(() => why(options, context)),
  );

async function why(
  { id, gateway, token, json }: WhyOptions,
  { terminal, env }: CommandContext,
): Promise<ExitCode> {
  if (!isDecisionId(id)) {
    throw new CommandError(
      `"${id}" is no decision id; take the value of x-gateway-decision from the refused reply`,
      EXIT.usage,
    );
  }
  const access = { gateway, token: token ?? env.GATEWAY_ADMIN_TOKEN };
  const record = (await askAdmin(access, 'GET', `/api/decisions/${id}`)) as DecisionRecord;
  if (json) terminal.json(record);
  else for (const line of sentences(record)) terminal.line(line);
  return EXIT.ok;
}

function sentences(record: DecisionRecord): string[] {
  const { at, method, path, policy, file, line, policyVersion, violated, endsAt } = record;
  const others = violated.filter((name) => name !== policy);
  return [
    `${method} ${path} was refused at ${at}.`,
    '',
    ...reasonOf(record),
    ...(others.length === 0 ? [] : [`Also exhausted: ${others.join(', ')}.`]),
    `Row:       ${file}:${line}, version ${policyVersion}`,
    `Counted:   ${record.identifier} ${record.identity}, address from ${record.addressFrom}`,
    `Decided:   by ${decidedBy(record)} in ${record.replica}`,
    `Room from: ${endsAt}`,
    '',
    adviceOf(record),
  ];
}

function reasonOf(record: DecisionRecord): string[] {
  const { decision, policy, limit, used, windowSeconds, algorithm, cost = 1, isUnproven } = record;
  if (decision === 'unavailable')
    return [`The store was away, and policy ${policy} says onStoreFailure: deny. The client got 503.`];
  if (decision === 'listed') return ['The list deny of the policy file names this client.'];
  const takes = cost === 1 ? '' : `; the request takes ${cost}`;
  const span = algorithm === 'token-bucket' ? 'at once' : `in ${windowSeconds} s`;
  const counted = `policy ${policy} allows ${limit} ${span}, and ${used ?? limit} were used${takes}`;
  if (isUnproven) {
    return [
      `For keys that have never worked, ${counted} by the client's address.`,
      'A key counts as working once the application has answered it with a 2xx.',
    ];
  }
  return [`The limit was reached: ${counted}.`];
}

function decidedBy({ decidedBy, fromMemory }: DecisionRecord): string {
  const by = decidedBy === 'store' ? 'the store' : 'the process alone';
  return fromMemory ? `${by}, remembered,` : by;
}

function adviceOf({ decision, file, line, isUnproven }: DecisionRecord): string {
  if (decision === 'unavailable')
    return `To let requests pass while the store is away, set onStoreFailure: local in ${file}:${line}.`;
  if (decision === 'listed') return `To let it in, remove the entry in ${file}:${line}; it applies at once.`;
  if (isUnproven) return 'Check that the client sends a key that the application accepts.';
  return `To let such clients make more requests, raise limit in ${file}:${line}; it applies at once.`;
}
