/** `unban`: Lets a banned client in again */
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

export const addUnban: AddCommand = (program, context) =>
  program.command(
    'unban [subject]',
    'Lets a banned client in again',
    (command) =>
      command
        .positional('subject', { type: 'string', describe: SUBJECT_TEXT })
        .options(SUBJECT_OPTIONS)
        .example('$0 unban 192.0.2.7', 'Within a second, in every process'),
    (options) => context.run(() => unban(options, options.json, context)),
  );

/** Exit 1 where there was no ban: most likely somebody else was meant. */
async function unban(options: SubjectArguments, json: boolean, context: CommandContext): Promise<ExitCode> {
  const { terminal } = context;
  const inspected = await askAbout<Inspected & { changed: boolean }>(options, context, '/api/unban');
  if (json) terminal.json(inspected);
  else {
    terminal.line(inspected.changed ? 'The ban is lifted.' : 'There was no ban.');
    printInspected(inspected, terminal);
  }
  return inspected.changed ? EXIT.ok : EXIT.no;
}
