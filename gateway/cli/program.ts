/** All commands under one name. */
import type { CommandContext } from '#gateway/cli/command/command.ts';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import type { Program } from '#shared/cli/command.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { runProgram } from '#shared/cli/program.ts';
import { ConfigError } from '#shared/configuration.ts';
import { COMMAND_GROUPS } from './commands/all.ts';
import { VERSION_TEXT } from './version-text.ts';

const DIGEST = /^-[\w-]{21}$/;

const PROGRAM: Program<CommandContext> = {
  name: 'floodgate',
  about: 'Checks, explains, rehearses and changes limits.',
  version: VERSION_TEXT,
  groups: COMMAND_GROUPS,
  epilogue: 'Exit codes: 0 fine, 1 the answer is no, 2 wrong call, 3 could not be reached.',
  exitCodeOf(error) {
    if (error instanceof PolicyFileError) return EXIT.no;
    return error instanceof ConfigError ? EXIT.unreachable : null;
  },
};

/** @param args without the names of Node and of the program */
export function runCli(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  return runProgram(PROGRAM, withNamedDigests(args), context);
}

/** `--key=VALUE` is `--key VALUE`. One digest in 64 begins with a dash, and is no option: it goes behind `--`. */
function withNamedDigests(args: readonly string[]): string[] {
  const parts = args.flatMap((arg) => {
    const { 1: option, 2: value } = /^(--(?:address|key|digest))=([^-].*|-.{21})$/.exec(arg) ?? [];
    return option === undefined || value === undefined ? [arg] : [option, value];
  });
  const isDashed = (arg: string): boolean => DIGEST.test(arg) && /^-(?!-)/.test(arg);
  const dashed = parts.filter(isDashed);
  if (dashed.length === 0) return parts;
  const others = parts.filter((arg) => !isDashed(arg) && arg !== '--digest');
  return [...others, '--digest', '--', ...dashed];
}
