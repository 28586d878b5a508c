/** `check [FILE]`: is this policy file right? */
import { readPolicyFile } from '#gateway/config.ts';
import { loadPolicies } from '#gateway/policy/load.ts';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import { type AddCommand, type CommandContext, EXIT, type ExitCode } from '../command.ts';

export const addCheck: AddCommand = (program, context) =>
  program.command(
    'check [file]',
    'Is this policy file right?',
    (command) =>
      command
        .positional('file', { type: 'string', default: 'policies.yaml', describe: 'The policy file' })
        .example('$0 check policies.yaml', 'Lists every mistake with line, column and fix'),
    ({ file, json }) => context.run(() => check(file, json, context)),
  );

function check(file: string, json: boolean, { terminal }: CommandContext): ExitCode {
  try {
    const set = loadPolicies(readPolicyFile(file), file);
    if (json) {
      terminal.json({ ok: true, file, policies: set.policies.length, problems: [], warnings: [] });
    } else {
      terminal.line(
        `${file}: ${set.policies.length} policies, ${set.exclude.length} exclusions, no mistakes`,
      );
    }
    return EXIT.ok;
  } catch (error) {
    if (!(json && error instanceof PolicyFileError)) throw error;
    terminal.json({ ok: false, file, policies: 0, problems: error.problems, warnings: [] });
    return EXIT.no;
  }
}
