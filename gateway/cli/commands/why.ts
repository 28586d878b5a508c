/** `why ID`: shows why a request was refused. */

import { ADMIN_OPTIONS, type AdminAccess, accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import type { DecisionRecord } from '#gateway/operate/decisions/decision-record.ts';
import { textOf } from '#gateway/operate/decisions/decision-text.ts';
import { isDecisionId } from '#gateway/reply/decision-ids.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';

const FACT_WIDTH = 'Retry at: '.length;

interface ToldDecision extends DecisionRecord {
  readonly address?: string | null;
}

interface WhyOptions extends AdminAccess, GlobalOptions {
  readonly id: string;
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
        .example(
          '$0 why 7k2q9x0m4c5t00000001',
          'Shows the policy, its line, the counted client and its usage',
        ),
    (options) => context.run(() => why(options, context)),
  );

async function why(options: WhyOptions, { terminal, env }: CommandContext): Promise<ExitCode> {
  const { id, json } = options;
  if (!isDecisionId(id)) {
    throw new CommandError(
      `"${id}" is not a decision id; take the value of x-gateway-decision from the refused reply`,
      EXIT.usage,
    );
  }
  const record = (await askAdmin(accessOf(options, env), 'GET', `/api/decisions/${id}`)) as ToldDecision;
  if (json) terminal.json(record);
  else for (const line of sentences(record)) terminal.line(line);
  return EXIT.ok;
}

function sentences(record: ToldDecision): string[] {
  // A gateway of an earlier version sends no address.
  const { what, reasons, facts, advice } = textOf(record, record.address ?? null);
  const told = facts.map(([name, value]) => `${`${name}:`.padEnd(FACT_WIDTH)}${value}`);
  return [what, '', ...reasons, ...told, '', advice];
}
