/** `why ID`: shows why a request was refused. */

import { ADMIN_OPTIONS, type AdminAccess, accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { type AddCommand, type CommandContext, STANDARD_INPUT } from '#gateway/cli/command/command.ts';
import { readable } from '#gateway/cli/command/log-options.ts';
import { explained, recordOfLine } from '#gateway/operate/decisions/by-id.ts';
import type { PartialRecord } from '#gateway/operate/decisions/decision-record.ts';
import { isDecisionId } from '#gateway/reply/decision-ids.ts';
import { findRefusal, type RefusalLine } from '#gateway/workbench/replay/find-refusal.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';

const FACT_WIDTH = 'Retry at: '.length;

/** A gateway of an earlier version sends no address. */
type ToldDecision = PartialRecord & { readonly address?: string | null };

interface WhyOptions extends AdminAccess, GlobalOptions {
  readonly id: string;
  readonly log: readonly string[];
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
        .options({
          ...ADMIN_OPTIONS,
          log: {
            type: 'string',
            array: true,
            default: [] as string[],
            describe: 'Access log of the gateway, also compressed with gzip; - for standard input',
          },
        })
        .example(
          ...copyable(
            '$0 why 7k2q9x0m4c5t00000001hbd3vz',
            'Shows the policy, its line, the counted client and its usage',
          ),
        ),
    (options) => context.run(() => why(options, context)),
  );

async function why(options: WhyOptions, context: CommandContext): Promise<ExitCode> {
  const { id, json } = options;
  const { terminal } = context;
  if (!isDecisionId(id)) {
    throw new CommandError(
      `"${id}" is not a decision id; take the value of x-gateway-decision from the refused reply`,
      EXIT.usage,
    );
  }
  const line = await lineOf(options);
  const told = await askGateway(options, context, line !== null);
  const record = line === null ? told : { ...told, ...recordOfLine(id, line, told) };
  if (record === null) return EXIT.no;
  if (json) terminal.json(line === null ? record : { ...record, log: line });
  else for (const sentence of sentences(record)) terminal.line(sentence);
  return EXIT.ok;
}

/** @returns null without --log @throws CommandError if no log has the line */
async function lineOf({ id, log }: WhyOptions): Promise<RefusalLine | null> {
  if (log.length === 0) return null;
  const inputs = log.map((file) => (file === STANDARD_INPUT ? process.stdin : file));
  const line = await findRefusal(inputs, id).catch((error) => {
    throw readable(error);
  });
  if (line === null)
    throw new CommandError(`${log.join(', ')} has no line with the id ${id}; name another log`, EXIT.no);
  return line;
}

/** @param hasLine the answer is not needed @returns null without an answer that is not needed */
async function askGateway(
  options: WhyOptions,
  { env }: CommandContext,
  hasLine: boolean,
): Promise<ToldDecision | null> {
  const path = `/api/decisions/${options.id}`;
  const asked = askAdmin(accessOf(options, env), 'GET', path) as Promise<ToldDecision>;
  return hasLine ? asked.catch(() => null) : asked;
}

function sentences(record: ToldDecision): string[] {
  const { what, reasons, facts, advice } = explained(record, record.address ?? null);
  const told = facts.map(([name, value]) => `${`${name}:`.padEnd(FACT_WIDTH)}${value}`);
  return [what, '', ...reasons, ...told, '', advice];
}
