/** `inspect`: What has this client used, and is it banned? */
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

export const addInspect: AddCommand = (program, context) =>
  program.command(
    'inspect [subject]',
    'What has this client used, and is it banned?',
    (command) =>
      command
        .positional('subject', { type: 'string', describe: SUBJECT_TEXT })
        .options(SUBJECT_OPTIONS)
        .example('$0 inspect 192.0.2.7', 'Counters of an address'),
    (options) => context.run(() => inspect(options, options.json, context)),
  );

async function inspect(options: SubjectArguments, json: boolean, context: CommandContext): Promise<ExitCode> {
  const inspected = await askAbout<Inspected>(options, context, '/api/inspect');
  if (json) context.terminal.json(inspected);
  else printInspected(inspected, context.terminal);
  return EXIT.ok;
}
