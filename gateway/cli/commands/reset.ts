/** `reset`: Lets a client begin afresh: clears its counters in all policies */
import type { Inspected } from '#gateway/admin/inspect.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { AddCommand, CommandContext } from '../command.ts';
import {
  askAbout,
  printInspected,
  SUBJECT_OPTIONS,
  SUBJECT_TEXT,
  type SubjectArguments,
} from '../subject-options.ts';

export const addReset: AddCommand = (program, context) =>
  program.command(
    'reset [subject]',
    'Lets a client begin afresh: clears its counters in all policies',
    (command) =>
      command
        .positional('subject', { type: 'string', describe: SUBJECT_TEXT })
        .options(SUBJECT_OPTIONS)
        .example('$0 reset --key fbk_1', 'Clears what a key has used'),
    (options) => context.run(() => reset(options, options.json, context)),
  );

async function reset(options: SubjectArguments, json: boolean, context: CommandContext): Promise<ExitCode> {
  const { terminal } = context;
  const inspected = await askAbout<Inspected & { cleared: number }>(options, context, '/api/reset');
  if (json) terminal.json(inspected);
  else {
    terminal.line(
      inspected.cleared === 0 ? 'There was nothing to clear.' : `Buckets cleared: ${inspected.cleared}.`,
    );
    printInspected(inspected, terminal);
  }
  return EXIT.ok;
}
