/** `diff OLD NEW`: shows what changes, and for whom. */

import { loadPolicyFile } from '#gateway/cli/command/arguments.ts';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import { differenceOf } from '#gateway/policy/difference.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';

export const addDiff: AddCommand = (program, context) =>
  program.command(
    'diff <old> <new>',
    'What changes for whom when one policy file replaces another?',
    (command) =>
      command
        .positional('old', { type: 'string', demandOption: true, describe: 'The policy file in use' })
        .positional('new', {
          type: 'string',
          demandOption: true,
          describe: 'The policy file to replace it with',
        })
        .example(
          '$0 diff policies.yaml edited.yaml',
          'Lists limits that change and counters that start from zero',
        ),
    (options) => context.run(() => diff(options.old, options.new, options.json, context)),
  );

function diff(oldFile: string, newFile: string, json: boolean, { terminal }: CommandContext): ExitCode {
  const changes = differenceOf(loadPolicyFile(oldFile), loadPolicyFile(newFile));
  if (json) terminal.json({ changes });
  else if (changes.length === 0) terminal.line('Nothing changes for anybody.');
  else {
    terminal.table(
      ['policy', 'what', 'from', 'to', 'effect'],
      changes.map(({ kind, policy, from, to, effect }) => [
        policy ?? '',
        kind,
        String(from ?? ''),
        String(to ?? ''),
        effect,
      ]),
    );
  }
  return EXIT.ok;
}
