/** All commands of the bench under one name. */
import type { Program } from '#shared/cli/command.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { readCall as readCallOf, runProgram } from '#shared/cli/program.ts';
import { VERSION } from '#shared/version.ts';
import type { BenchContext } from './command.ts';

const PROGRAM: Program<BenchContext> = {
  name: 'npm run bench --',
  about:
    'Measures what a request costs, attacks the gateway, and exceeds its limits. Without a command: peers.',
  version: VERSION,
  groups: {
    Commands: {
      peers: async () => (await import('./commands/peers.ts')).PEERS_COMMAND,
      ladder: async () => (await import('./commands/ladder.ts')).LADDER,
      growth: async () => (await import('./commands/growth.ts')).GROWTH,
      abuse: async () => (await import('./commands/abuse.ts')).ABUSE,
      soak: async () => (await import('./commands/soak.ts')).SOAK,
    },
  },
  epilogue: 'Exit codes: 0 success, 1 a check has failed, 2 wrong arguments or a missing program.',
  exitCodeOf: () => EXIT.no,
  sentenceOf: (error) => (error.name === 'CommandError' ? error.message : (error.stack ?? error.message)),
};

export function runBench(args: readonly string[], context: BenchContext): Promise<ExitCode> {
  return runProgram(PROGRAM, withCommand(args), context);
}

/** Reads the arguments of a call without running it. @throws CommandError if they are wrong */
export function readCall(args: readonly string[]): Promise<unknown> {
  return readCallOf(PROGRAM, withCommand(args), {});
}

function withCommand(args: readonly string[]): readonly string[] {
  const [first = ''] = args;
  const isNamed = first !== '' && (!first.startsWith('-') || ['-h', '--help', '--version'].includes(first));
  return isNamed ? args : ['peers', ...args];
}
