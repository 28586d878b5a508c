/** Parts that all commands share. */
import { type Command, define, type Given, type Options } from '#shared/cli/command.ts';
import type { ExitCode } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

export interface CommandContext {
  readonly terminal: Terminal;
  /** The environment, for defaults of options. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
  /** Starts the gateway in this process, with these settings added to the environment. Resolves once it is ready. */
  readonly start: (settings: Readonly<Record<string, string>>) => Promise<void>;
}

/** Defines a command. A file of `commands/` exports one or more. */
export function command<const O extends Options>(definition: {
  readonly describe: string;
  readonly options: O;
  readonly examples: readonly (readonly [command: string, what: string])[];
  readonly run: (given: Given<O>, context: CommandContext) => Promise<ExitCode> | ExitCode;
}): Command<CommandContext> {
  return define(definition);
}

/** The policy file that the gateway uses. */
export const POLICY_FILE = { variable: 'GATEWAY_POLICIES', default: 'policies.yaml' } as const;

/** `-H`, which can be repeated. */
export const HEADER = { short: 'H', isList: true } as const;

/** Options of every command that asks a running gateway. */
export const ADMIN_OPTIONS = {
  gateway: {
    describe: 'Admin listener of the gateway; http://127.0.0.1:9090, or as GATEWAY_ADMIN_HOST and _PORT say',
  },
  token: { variable: 'GATEWAY_ADMIN_TOKEN', describe: 'Admin token' },
} as const;
